"""Compiles small Triton kernels for sm_90, without a GPU, and keeps what ``from_triton`` reads of them as fixtures.

Run in an environment of its own:

    pip install triton==3.6.0 && python make_triton_fixtures.py

Each kernel becomes a cubin and a JSON file with the metadata, the signature, the constants and the attributes that
Triton gave it, and with what a ``triton.Config`` says of it.  Line tables are left out, for they name folders of this
machine.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = Path(__file__).parent
TARGET = GPUTarget("cuda", 90, 32)
ABOUT_THIS_MACHINE = {"extern_libs", "hash"}


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def scale(x, out, stride, factor, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at * stride, mask=inside) * factor, mask=inside)


@triton.jit
def double(x, out, M: tl.constexpr, N: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    out.store([row, column], x.load([row, column]) * 2)


TILE = "tensordesc<fp16[64, 32]>"
ADD = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
NARROW = triton.Config({"BLOCK": 256}, num_warps=2, num_stages=2)
SCALE = {"x": "*fp16", "out": "*fp16", "stride": "i32", "factor": "fp32", "n": "i32"}


def main() -> None:
    keep("add", add, ADD, {"BLOCK": 1024})
    keep("add-narrow", add, ADD, NARROW.kwargs, chosen=NARROW)
    keep("scale", scale, SCALE, {"stride": 1, "BLOCK": 256})  # as a call with stride=1 has it
    keep("add-one-warp", add, ADD, {"BLOCK": 1024}, num_warps=1)
    keep("double", double, {"x": TILE, "out": TILE}, {"M": 64, "N": 32}, num_ctas=2)


def keep(
    name: str,
    function: Any,
    signature: dict[str, str],
    constants: dict[str, int],
    chosen: triton.Config | None = None,
    **options: int,
) -> None:
    """``chosen`` stands for what an autotuner chose: it has the options, and ``constants`` among its own."""
    if chosen is not None:
        options = {name: value for name, value in chosen.all_kwargs().items() if name not in constants}
    declared = {**signature, **dict.fromkeys(constants, "constexpr")}
    source = ASTSource(fn=function, signature=declared, constexprs=constants, attrs={})
    compiled = triton.compile(source, target=TARGET, options=options)
    stem = f"{name}-{triton.__version__}"
    (HERE / f"{stem}.cubin").write_bytes(compiled.asm["cubin"])
    metadata = {key: value for key, value in compiled.metadata._asdict().items() if key not in ABOUT_THIS_MACHINE}
    metadata["target"] = {"backend": TARGET.backend, "arch": TARGET.arch, "warp_size": TARGET.warp_size}
    src = compiled.src
    facts = {
        "metadata": metadata,
        "src": {
            "arg_names": src.fn.arg_names,
            "signature": src.signature,
            "constants": list(src.constants.items()),
            "attrs": list(src.attrs.items()),
            "hash": src.hash(),
        },
    }
    if chosen is not None:
        facts["config"] = chosen.all_kwargs()
    text = json.dumps(facts, indent=1, sort_keys=True, default=sorted)
    (HERE / f"{stem}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
