"""What Triton has compiled, as ``make_triton_fixtures.py`` kept it: stands in for Triton's ``CompiledKernel``."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FOLDER = Path(__file__).parent / "triton_compiled"


class Source:
    """``triton.compiler.ASTSource``, as far as it is kept."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.fn = SimpleNamespace(arg_names=facts["arg_names"])
        self.signature: dict[str, Any] = facts["signature"]
        self.constants = {_key(key): value for key, value in facts["constants"]}
        self.attrs = {_key(key): value for key, value in facts["attrs"]}
        self._hash = facts["hash"]

    def hash(self) -> str:
        return self._hash


def _key(kept: Any) -> Any:
    """JSON has no tuples."""
    return tuple(kept) if isinstance(kept, list) else kept


class Config:
    """``triton.Config``, as far as it is kept."""

    def __init__(self, stem: str, **changes: Any) -> None:
        self._kept = {**_facts(stem)["config"], **changes}

    def all_kwargs(self) -> dict[str, Any]:
        return self._kept


def _facts(stem: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((FOLDER / f"{stem}.json").read_text(encoding="utf-8"))
    return facts


def compiled(stem: str, **metadata: Any) -> SimpleNamespace:
    """The fixture ``add-3.6.0``; ``metadata`` replaces some of Triton's."""
    facts = _facts(stem)
    target = SimpleNamespace(**facts["metadata"].pop("target"))
    return SimpleNamespace(
        asm={"cubin": (FOLDER / f"{stem}.cubin").read_bytes(), "ptx": f"// PTX of {stem}"},
        metadata=SimpleNamespace(**{**facts["metadata"], "target": target, **metadata}),
        src=Source(facts["src"]),
    )
