"""Command lines of children in which no module of the current folder stands before one of the library.

``python -m`` and ``python -c`` put that folder first on the path: a ``copy.py`` of the user's would be taken for the
standard library's.  ``-P`` came with Python 3.11.
"""

from __future__ import annotations

import sys
from pathlib import Path

_HOME = str(Path(__file__).parents[2])
"""Folder of this package."""
_WITHOUT_FOLDER = "import sys; getattr(sys.flags, 'safe_path', 0) or sys.path.pop(0); "
AS_COMMAND = f"{_WITHOUT_FOLDER}import pytest; sys.exit(pytest.main())"
"""As the command ``pytest``."""
FOLDER_LAST = f"{_WITHOUT_FOLDER}import os, pytest; sys.path.append(os.getcwd()); sys.exit(pytest.main())"
"""The same for tests that may be used to ``python -m pytest``, and import what lies in the current folder."""
_MODULE = (
    f"{_WITHOUT_FOLDER}sys.path.insert(0, sys.argv[1]); import pytest_gpuperf; del sys.path[0]; import importlib; "
    "sys.exit(importlib.import_module(sys.argv[2]).main(sys.argv[3:]))"
)


def module_command(module: str, *arguments: str) -> list[str]:
    """Python that calls ``main(arguments)`` of a module of this very package, and ends with the status it returns."""
    return [sys.executable, "-c", _MODULE, _HOME, module, *arguments]
