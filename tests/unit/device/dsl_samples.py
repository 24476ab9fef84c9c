"""What the CuTe DSL and cuTile made, as the scripts in ``dsl_compiled`` kept it: stands in for their own objects."""

from __future__ import annotations

import json
import lzma
import sys
import types
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FOLDER = Path(__file__).parent / "dsl_compiled"
PACKAGE = "recorded_cutile"


def cubin(stem: str) -> bytes:
    """The machine code ``cute-add-4.8.1-sm_90a``."""
    return lzma.decompress((FOLDER / f"{stem}.cubin.xz").read_bytes())


def cute_compiled(stem: str, **changes: Any) -> SimpleNamespace:
    """A ``JitCompiledFunction``, as far as it is read; ``changes`` replace what was kept."""
    return SimpleNamespace(**{"__cubin__": cubin(stem), "__ptx__": f"//\n// PTX of {stem}", **changes})


class RecordedSignature:
    """A ``KernelSignature``."""

    __module__ = f"{PACKAGE}._signature"

    def __init__(self, stem: str) -> None:
        self.stem = stem
        self.parameters = tuple(map(_constraint, json.loads((FOLDER / f"{stem}.json").read_text(encoding="utf-8"))))


def _constraint(facts: dict[str, Any]) -> Any:
    made = type(facts["class"], (), {})()
    vars(made).update({name: value for name, value in facts.items() if name != "class"})
    return made


def install_recorded_cutile() -> None:
    """Make ``export_kernel`` hand out what was recorded, where the adapter looks for cuTile's own."""

    def export_kernel(kernel: Any, signatures: Any, file: Any, *, gpu_code: str, output_format: str) -> None:
        (signature,) = signatures
        assert output_format == "cubin"
        path = FOLDER / f"{getattr(kernel, 'stem', signature.stem)}-{gpu_code}.cubin.xz"
        if not path.exists():
            raise ValueError(f"unsupported GPU {gpu_code}")
        file.write(lzma.decompress(path.read_bytes()))

    sys.modules[PACKAGE] = types.ModuleType(PACKAGE)
    sys.modules[PACKAGE].export_kernel = export_kernel  # type: ignore[attr-defined]
