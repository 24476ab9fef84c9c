"""Compiles small kernels of the CuTe DSL for three architectures, without a GPU, and keeps their cubins as fixtures.

Run in an environment of its own:

    pip install nvidia-cutlass-dsl==4.8.1 && python make_cute_fixtures.py

``tests/gpu/test_gpu_dsl.py`` compiles the same kernels on a GPU, and checks what they compute.
"""

from __future__ import annotations

import importlib.metadata
import lzma
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cuda.bindings.driver as cuda
import cutlass
from cutlass import cute
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

HERE = Path(__file__).parent
VERSION = importlib.metadata.version("nvidia-cutlass-dsl")
"""The version that gets every kernel and architecture; the others show what differs between versions."""
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100a")


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = block * 256 + thread
    if at < n:
        out[at] = x[at] + y[at]


@cute.jit
def add(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    n = cute.size(x)
    add_kernel(x, y, out, n).launch(grid=(cute.ceil_div(n, 256), 1, 1), block=(256, 1, 1), stream=stream)


@cute.kernel
def doubles_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = block * 256 + thread
    if at < n:
        out[at] = (x[at].to(cutlass.Float64) * cutlass.Float64(1.1) + y[at].to(cutlass.Float64)).to(cutlass.Float32)


@cute.jit
def doubles(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    n = cute.size(x)
    doubles_kernel(x, y, out, n).launch(grid=(cute.ceil_div(n, 256), 1, 1), block=(256, 1, 1), stream=stream)


@cute.kernel
def rowsum_kernel(x: cute.Tensor, out: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    total = cutlass.Float32(0.0)
    for step in range(x.shape[1] // 32):
        total += x[row, step * 32 + lane]
    total = cute.arch.warp_reduction_sum(total)
    if lane == 0:
        out[row] = total


@cute.jit
def rowsum(x: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    rowsum_kernel(x, out).launch(grid=(x.shape[0], 1, 1), block=(32, 1, 1), stream=stream)


@cute.kernel
def transpose_kernel(x: cute.Tensor, out: cute.Tensor):
    column, line, _ = cute.arch.thread_idx()
    right, down, _ = cute.arch.block_idx()
    layout = cute.make_layout((32, 32), stride=(33, 1))
    tile = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, layout, 16)
    for step in cutlass.range_constexpr(4):
        tile[line + 8 * step, column] = x[down * 32 + line + 8 * step, right * 32 + column]
    cute.arch.sync_threads()
    for step in cutlass.range_constexpr(4):
        out[right * 32 + line + 8 * step, down * 32 + column] = tile[column, line + 8 * step]


@cute.jit
def transpose(x: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    blocks = (x.shape[1] // 32, x.shape[0] // 32, 1)
    transpose_kernel(x, out).launch(grid=blocks, block=(32, 8, 1), stream=stream)


@cute.kernel
def decay_kernel(x: cute.Tensor, out: cute.Tensor, steps: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = block * 256 + thread
    value = x[at]
    for _ in cutlass.range_constexpr(steps):
        value = value * 0.999 + 0.001
    out[at] = value


@cute.jit
def decay(x: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream, steps: cutlass.Constexpr):
    decay_kernel(x, out, steps).launch(grid=(cute.size(x) // 256, 1, 1), block=(256, 1, 1), stream=stream)


KERNELS = {
    "add": (add, (1, 1, 1)),
    "doubles": (doubles, (1, 1, 1)),
    "rowsum": (rowsum, (2, 1)),
    "transpose": (transpose, (2, 2)),
    "decay": (decay, (1, 1)),
}
"""Host functions, with the number of dimensions of each tensor."""
DECAYS = (100, 104)
"""Steps of ``decay``: the second is slower."""


def compiled(name: str, arch: str, *constants: int) -> Any:
    """What ``cute.compile`` returns for tensors of any extents, in the order of C."""
    tensors = [
        make_fake_compact_tensor(
            cutlass.Float32, tuple(cute.sym_int() for _ in range(count)), stride_order=tuple(reversed(range(count))),
            assumed_align=16,
        )
        for count in KERNELS[name][1]
    ]  # fmt: skip
    return compiled_for(name, tensors, make_fake_stream(), *constants, options=f"--gpu-arch {arch}")


def compiled_for(name: str, tensors: Sequence[Any], stream: Any, *constants: int, options: str = "") -> Any:
    """What ``cute.compile`` returns for these tensors, its machine code kept."""
    keep_them = f"--keep-cubin --keep-ptx --dump-dir {tempfile.mkdtemp()} {options}"
    return cute.compile(KERNELS[name][0], *tensors, stream, *constants, options=keep_them)


def main() -> None:
    for name in ("add", "doubles", "rowsum"):
        for arch in ARCHITECTURES:
            keep(name, arch)
    for steps in DECAYS:
        keep("decay", "sm_90a", steps)


def keep(name: str, arch: str, *constants: int) -> None:
    stem = f"cute-{name}{''.join(map(str, constants))}-{VERSION}-{arch}"
    (HERE / f"{stem}.cubin.xz").write_bytes(lzma.compress(compiled(name, arch, *constants).__cubin__))


if __name__ == "__main__":
    sys.exit(main())
