"""Kernels of CuPy, as ``make_cupy_fixtures.py`` kept them: stand in for CuPy's ``RawKernel``."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


def raw(kept: str, version: str = LATEST, **state: Any) -> RawKernel:
    return RawKernel({**_facts(version)["raw"][kept]["state"], **state})


def module(name: str, version: str = LATEST) -> SimpleNamespace:
    return SimpleNamespace(**_facts(version)["modules"][name], get_function=None)


def _facts(version: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((FOLDER / f"cupy-{version}.json").read_text(encoding="utf-8"))
    return facts
