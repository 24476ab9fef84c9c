"""Performance regression tests for GPU kernels: a pytest plugin and the ``gpuperf`` command.

What a test may import and annotate is named in ``__init__.pyi``; docs/reference/api.md has a section on each name.
Names are resolved on first use, so that importing the package costs nothing.  CONTRIBUTING.md maps the folders.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from pytest_gpuperf.model import __version__ as __version__

_EXPORTS = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOME_OF = {name: home for home, name in re.findall(r"^from (\S+) import ([A-Z]\w+) as", _EXPORTS, re.MULTILINE)}

__all__ = [*sorted(_HOME_OF), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])
