"""Importing the package costs nothing."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = "[m for m in ('cuda', 'numpy', 'scipy', 'cupy', 'pytest', 'msgspec') if m in sys.modules]"
    code = f"import sys, pytest_gpuperf.compile; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
