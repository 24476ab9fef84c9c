"""Compiles small kernels of cuTile for three architectures, without a GPU, and keeps cubins and signatures as fixtures.

Run in this folder, for cubins name the file that they came from:

    pip install 'cuda-tile[tileiras]==1.7.0' && python make_cutile_fixtures.py

``tests/gpu/test_gpu_dsl.py`` launches the cubins, and checks what they compute.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import lzma
import sys
from pathlib import Path
from typing import Any

import cuda.tile as ct
from cuda.tile.compilation import (
    ArrayConstraint,
    CallingConvention,
    ConstantConstraint,
    KernelSignature,
    ScalarConstraint,
    export_kernel,
)

HERE = Path(__file__).parent
VERSION = importlib.metadata.version("cuda-tile")
"""The version that gets every kernel and architecture; the others show what differs between versions."""
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


@ct.kernel
def scale(x, out, factor, TILE: ct.Constant[int]):
    at = ct.bid(0)
    ct.store(out, index=(at,), tile=ct.load(x, index=(at,), shape=(TILE,)) * factor)


@ct.kernel
def softmax(x, out, COLUMNS: ct.Constant[int]):
    row = ct.bid(0)
    values = ct.load(x, index=(row, 0), shape=(1, COLUMNS))
    powers = ct.exp(values - ct.max(values, axis=1, keepdims=True))
    ct.store(out, index=(row, 0), tile=powers / ct.sum(powers, axis=1, keepdims=True))


@ct.kernel
def matmul(a, b, c, M: ct.Constant[int], N: ct.Constant[int], K: ct.Constant[int]):
    row, column = ct.bid(0), ct.bid(1)
    total = ct.zeros((M, N), dtype=ct.float32)
    for step in range(ct.num_tiles(a, axis=1, shape=(M, K))):
        left = ct.load(a, index=(row, step), shape=(M, K))
        right = ct.load(b, index=(step, column), shape=(K, N))
        total = ct.mma(left, right, total)
    ct.store(c, index=(row, column), tile=total)


@ct.kernel
def decay(x, out, TILE: ct.Constant[int], STEPS: ct.Constant[int]):
    at = ct.bid(0)
    values = ct.load(x, index=(at,), shape=(TILE,))
    for _ in range(10):
        for _ in ct.static_iter(range(STEPS)):
            values = values * 0.999 + 0.001
    ct.store(out, index=(at,), tile=values)


def array(dtype: Any, axes: int) -> ArrayConstraint:
    """Any array in the order of C whose rows, if there are several, start at multiples of 16 elements."""
    return ArrayConstraint(
        dtype, axes, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(), may_alias_internally=False,
        stride_constant=(*[None] * (axes - 1), 1), stride_divisible_by=(*[16] * (axes - 1), 1),
        base_addr_divisible_by=16,
    )  # fmt: skip


HALVES, FLOATS, LINE = array(ct.float16, 2), array(ct.float32, 2), array(ct.float32, 1)
SIGNATURES = {
    "scale": (scale, (LINE, LINE, ScalarConstraint(ct.float32), 1024)),
    "softmax": (softmax, (FLOATS, FLOATS, 1024)),
    "matmul": (matmul, (HALVES, HALVES, FLOATS, 64, 64, 32)),
    "decay40": (decay, (LINE, LINE, 1024, 40)),
    "decay50": (decay, (LINE, LINE, 1024, 50)),
}


def main() -> None:
    for name, (kernel, parameters) in SIGNATURES.items():
        signature = KernelSignature(parameters, CallingConvention.cutile_python_v1())
        keep(name, kernel, signature, ARCHITECTURES if kernel in (scale, softmax) else ("sm_90",))


def keep(name: str, kernel: Any, signature: KernelSignature, architectures: tuple[str, ...]) -> None:
    stem = f"cutile-{name}-{VERSION}"
    for arch in architectures:
        content = io.BytesIO()
        export_kernel(kernel, [signature], content, gpu_code=arch, output_format="cubin")
        here = str(HERE.resolve()).encode()
        cubin = content.getvalue().replace(here, b"/" + b"-" * (len(here) - 1))
        (HERE / f"{stem}-{arch}.cubin.xz").write_bytes(lzma.compress(cubin))
    facts = [described(one) for one in signature.parameters]
    (HERE / f"{stem}.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def described(constraint: Any) -> dict[str, Any]:
    """Its class, and its fields as JSON has them."""
    if isinstance(constraint, ConstantConstraint):
        fields = {"value": constraint.value}
    else:
        names = [name for name in dir(constraint) if not name.startswith("_")]
        fields = {name: getattr(constraint, name) for name in names}
    kept = {name: str(value) if isinstance(value, ct.DType) else value for name, value in fields.items()}
    return {"class": type(constraint).__name__, **kept}


if __name__ == "__main__":
    sys.exit(main())
