"""Files that come with the package: of a wheel, or of the repository that it is run from."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def shipped(name: str, in_repository: str) -> Path:
    """The folder ``name`` beside the modules; in a checkout, ``in_repository`` beside the package.

    Raises ``FileNotFoundError`` where neither is there.
    """
    for folder in (PACKAGE / name, PACKAGE.parent / in_repository):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"{PACKAGE / name} is missing: install pytest-gpuperf again")
