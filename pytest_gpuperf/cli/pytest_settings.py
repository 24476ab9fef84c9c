"""Whether a folder has settings of pytest, so that pytest takes it for a root."""

from __future__ import annotations

import re
from pathlib import Path

FILES = {
    "pytest.toml": b"", ".pytest.toml": b"", "pytest.ini": b"", ".pytest.ini": b"", "pyproject.toml": b"[tool.pytest",
    "tox.ini": b"[pytest]", "setup.cfg": b"[tool:pytest]",
}  # fmt: skip
"""Where pytest reads its settings, and what such a file then holds."""

NARROWING = re.compile(
    rb"python_files|python_functions|norecursedirs|--ignore|testpaths(?!\s*=\s*\.\s*$)", re.MULTILINE
)
"""Settings of where tests lie and what they are called, but for that of all folders."""


def has_pytest_settings(folder: Path) -> bool:
    return any(_holds(folder / name, section) for name, section in FILES.items())


def narrows_collection(folder: Path) -> bool:
    """Whether settings of pytest may leave out tests that lie beside their kernels."""
    return any(_holds(folder / name, section, NARROWING) for name, section in FILES.items())


def _holds(path: Path, section: bytes, also: re.Pattern[bytes] = re.compile(b"")) -> bool:
    try:
        return path.is_file() and section in (content := path.read_bytes()) and also.search(content) is not None
    except OSError:
        return False
