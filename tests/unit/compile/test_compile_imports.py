"""Importing the package costs nothing; its names come on demand."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_gpuperf import compile as package


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = "[m for m in ('cuda', 'numpy', 'scipy', 'cupy', 'pytest', 'msgspec') if m in sys.modules]"
    code = f"import sys, pytest_gpuperf.compile; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", package.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(package, name) is not None
    assert not isinstance(getattr(package, name), type(sys))  # no submodule hides a function of its name


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        package.nothing  # noqa: B018
