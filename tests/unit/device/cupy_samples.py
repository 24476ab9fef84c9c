"""Kernels of CuPy, as ``make_cupy_fixtures.py`` kept them: stand in for CuPy's ``RawKernel`` and its siblings."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from pytest_gpuperf.compile.cupy_elementwise import ElementType

FOLDER = Path(__file__).parent / "cupy_kernels"
VERSIONS = sorted(path.stem.removeprefix("cupy-") for path in FOLDER.glob("cupy-*.json"))
LATEST = VERSIONS[-1]


class RawKernel:
    """``cupy.RawKernel``, as far as it is kept: what is readable, and its state."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        self.code, self.name, self.backend = state["code"], state["name"], state["backend"]

    def __getstate__(self) -> dict[str, Any]:
        return {**self._state, "options": tuple(self._state["options"])}


class ElementwiseKernel(SimpleNamespace):
    """``cupy.ElementwiseKernel``, as far as it is kept."""


def raw(kept: str, version: str = LATEST, **state: Any) -> RawKernel:
    return RawKernel({**_facts(version)["raw"][kept]["state"], **state})


def module(name: str, version: str = LATEST) -> SimpleNamespace:
    return SimpleNamespace(**_facts(version)["modules"][name], get_function=None)


def elementwise(name: str, version: str = LATEST, **facts: Any) -> ElementwiseKernel:
    kept = _facts(version)["elementwise"][name]
    kept["kwargs"] = {key: tuple(value) if isinstance(value, list) else value for key, value in kept["kwargs"].items()}
    for side in ("in_params", "out_params"):
        kept[side] = tuple(SimpleNamespace(**one) for one in kept[side])
    return ElementwiseKernel(**{**kept, **facts})


def cases(version: str) -> list[tuple[str, list[ElementType], int, bool, str]]:
    """Kernel, types of its arguments, axes and width of the index, and the code that CuPy generates."""
    return [
        (name, [ElementType(np.dtype(dtype), *(of or ())) for dtype, of in types], axes, narrow, code)
        for name, types, axes, narrow, code in _facts(version)["cases"]
    ]


def _facts(version: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((FOLDER / f"cupy-{version}.json").read_text(encoding="utf-8"))
    return facts
