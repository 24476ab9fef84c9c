"""Whether a folder has settings of pytest, so that pytest takes it for a root."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "pytest.toml": b"", ".pytest.toml": b"", "pytest.ini": b"", ".pytest.ini": b"", "pyproject.toml": b"[tool.pytest",
    "tox.ini": b"[pytest]", "setup.cfg": b"[tool:pytest]",
}  # fmt: skip
"""Where pytest reads its settings, and what such a file then holds."""


def has_pytest_settings(folder: Path) -> bool:
    return any(_holds(folder / name, section) for name, section in FILES.items())


def _holds(path: Path, section: bytes) -> bool:
    try:
        return path.is_file() and section in path.read_bytes()
    except OSError:
        return False
