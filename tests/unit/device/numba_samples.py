"""Kernels of Numba, as ``make_numba_fixtures.py`` kept them: stand in for ``numba.cuda`` and its dispatchers."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

FOLDER = Path(__file__).parent / "numba_compiled"
LATEST = "numba-cuda-0.30.4"


class NumbaType(SimpleNamespace):
    """A type of Numba: its name, and what an array's tells."""

    def __str__(self) -> str:
        return str(self.name)


class CudaSupportError(Exception):
    """Numba's, where there is no driver."""


class NumbaCuda(ModuleType):
    """The module ``numba.cuda`` of one version, which compiles what was kept."""

    def __init__(self, version: str) -> None:
        super().__init__("numba.cuda")
        self.facts: dict[str, Any] = json.loads((FOLDER / f"{version}.json").read_text(encoding="utf-8"))
        self.__file__ = f"/site-packages/{self.facts['package'].replace('-', '_')}/cuda/__init__.py"
        self.calls: list[dict[str, Any]] = []
        self.problem: Exception | None = None

    def compile(self, pyfunc: Any, sig: Any, **options: Any) -> tuple[str, None]:
        assert set(options) <= set(self.facts["compile"])
        self.calls.append({"sig": sig, **options})
        if self.problem is not None:
            raise self.problem
        major, minor = options["cc"]
        return self.facts["kernels"][pyfunc.__name__]["ptx"][f"sm_{major}{minor}"], None

    def dispatcher(self, name: str, **options: Any) -> SimpleNamespace:
        """What ``@cuda.jit`` made; its own PTX is linked, for LTO IR is no text to keep."""
        kept = self.facts["kernels"][name]
        names = tuple(kept["names"])
        function = SimpleNamespace(
            __name__=name, __code__=SimpleNamespace(co_varnames=(*names, "i"), co_argcount=len(names))
        )
        return SimpleNamespace(py_func=function, targetoptions={**kept["options"], "lto": False, **options})

    def signature(self, name: str) -> tuple[NumbaType, ...]:
        types = self.facts["kernels"][name]["types"]
        return tuple(
            NumbaType(**{key: NumbaType(name=value) if key == "dtype" else value for key, value in one.items()})
            for one in types
        )
