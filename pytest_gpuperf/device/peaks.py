"""Measured ceilings of a GPU: the roofs of a roofline, in bytes or operations per second.

Each is the best of a few medians, for a ceiling is what the GPU can do, not what it does on average.  The kernels are
in ``peaks.cu``; matrix products of the tensor cores are cuBLAS's, by CuPy.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.interface import Configuration, Device, Slot, Timer

BUFFER_BYTES = 1 << 30
"""Of a copy, and of what is read from memory: many times any L2.  Less on a GPU whose memory is short."""
READ_BYTES = {"l2": 1 << 30, "shared": 6 << 30}
"""What one launch reads out of a small buffer, over and over."""
SHARED_BYTES = 16 << 10
"""Of a block."""
BATCHES = 3
SAMPLES = 9
THREADS = 256
VECTORS = 4
"""16-byte loads that a thread has in flight."""
STEP_BYTES = THREADS * VECTORS * 16
"""Bytes that one block reads in one step."""
FMA_CHAINS = 8
FMA_STEPS = 8192
MATRIX = 8192
"""Rows and columns of the matrices that the tensor cores multiply."""
SOURCE = Path(__file__).with_name("peaks.cu").read_text(encoding="utf-8")
OPTIONS = (f"-DVECTORS={VECTORS}", f"-DCHAINS={FMA_CHAINS}", f"-DSTEPS={FMA_STEPS}")


def measure_peak(device: Any, name: str) -> float:
    """The ceiling of this name, bytes/s, FLOP/s or integer operations/s; 0 where this GPU or its libraries have none.

    Raises ``TimerError``, and the ``MemoryError`` of CuPy next to large arrays.
    """
    return float(_MEASURED[name](device))


# --- memory --------------------------------------------------------------------------------------


def _copy(device: Any) -> float:
    """Bytes read plus written per second, by the driver; of random data, for zeros draw less power."""
    source = device.arrays.random(_buffer_bytes(device) // 4, "float32", seed=0)
    target = device.arrays.empty_like(source)
    run = functools.partial(target.data.copy_from_device_async, source.data, source.nbytes, device.stream)
    return 2 * int(source.nbytes) / _best_s(device, run)


def _dram(device: Any) -> float:
    """Of reading alone: a copy turns the memory between reading and writing, and is about a tenth slower."""
    size = _buffer_bytes(device)
    return _read(device, size, size)


def _buffer_bytes(device: Any) -> int:
    return _power_of_two(min(BUFFER_BYTES, device.facts.memory_bytes // 8))


def _power_of_two(most: int) -> int:
    return 1 << (most.bit_length() - 1)


def _read(device: Any, size: int, total: int, shared_bytes: int = 0) -> float:
    """Bytes per second, of ``total`` in one launch, out of a buffer of ``size``: a power of two."""
    blocks = _resident_blocks(device)
    steps = max(total // (blocks * STEP_BYTES), 1)
    source, out = device.arrays.random(size // 4, "float32", seed=0), device.arrays.empty(1, "uint32")
    options = ("-DIN_SHARED",) if shared_bytes else ()
    run = _launch(
        device, "gpuperf_read", blocks, source, out, np.uint32(size // 16), np.uint32(steps),
        options=options, shared_bytes=shared_bytes,
    )  # fmt: skip
    return steps * blocks * STEP_BYTES / _best_s(device, run)


# --- arithmetic ----------------------------------------------------------------------------------


def _multiply_adds(device: Any, c_type: str, dtype: str) -> float:
    """Operations per second, two for each multiply-add: 8 chains in every resident thread."""
    blocks, number = _resident_blocks(device), np.dtype(dtype).type
    a, b = (number(3), number(5)) if dtype == "uint32" else (number(0.999), number(0.001))
    out = device.arrays.empty(1, dtype)
    run = _launch(device, "gpuperf_multiply_add", blocks, out, a, b, options=(f"-DNUMBER={c_type}",))
    return 2 * FMA_CHAINS * FMA_STEPS * blocks * THREADS / _best_s(device, run)


@functools.cache
def _matrix_product(device: Any, dtype: str) -> float:
    """FLOP per second of cuBLAS in float16 or bfloat16 with sums in float32; 0 without tensor cores or cuBLAS."""
    if device.facts.compute_capability < {"float16": (7, 0), "bfloat16": (8, 0)}[dtype]:
        return 0.0
    try:
        from cupy.cuda import cublas, runtime  # noqa: PLC0415 an extra
    except ImportError:
        return 0.0
    kind = {"float16": runtime.CUDA_R_16F, "bfloat16": runtime.CUDA_R_16BF}[dtype]
    wide = (device.arrays.random((MATRIX, MATRIX), "float32", seed=seed, low=-1, high=1) for seed in (0, 1))
    a, b = (
        floats.astype("float16") if dtype == "float16" else floats.view("uint16")[:, 1::2].copy()  # the upper halves
        for floats in wide
    )
    c, handle = device.arrays.empty((MATRIX, MATRIX), "uint16"), device.cupy.cuda.Device().cublas_handle
    one, zero = np.array(1, "float32"), np.array(0, "float32")

    def run() -> None:
        cublas.gemmEx(
            handle, cublas.CUBLAS_OP_T, cublas.CUBLAS_OP_N, MATRIX, MATRIX, MATRIX, one.ctypes.data, a.data.ptr, kind,
            MATRIX, b.data.ptr, kind, MATRIX, zero.ctypes.data, c.data.ptr, kind, MATRIX, cublas.CUBLAS_COMPUTE_32F,
            cublas.CUBLAS_GEMM_DEFAULT,
        )  # fmt: skip

    return 2 * MATRIX**3 / _best_s(device, run)


def _fp8(device: Any) -> float:
    """Twice bfloat16's rate, as data sheets have it on every GPU with FP8: an estimate."""
    has_fp8 = device.facts.compute_capability >= (8, 9)
    return 2 * _matrix_product(device, "bfloat16") if has_fp8 else 0.0


_MEASURED: Mapping[str, Callable[[Any], float]] = MappingProxyType({
    "copy_bandwidth": _copy,
    "dram": _dram,
    "l2": lambda device: _read(device, _power_of_two(device.facts.l2_bytes // 3), READ_BYTES["l2"]),
    "shared": lambda device: _read(device, SHARED_BYTES, READ_BYTES["shared"], SHARED_BYTES),
    "fp32": lambda device: _multiply_adds(device, "float", "float32"),
    "fp64": lambda device: _multiply_adds(device, "double", "float64"),
    "int32": lambda device: _multiply_adds(device, "unsigned", "uint32"),
    "fp16": lambda device: _matrix_product(device, "float16"),
    "bf16": lambda device: _matrix_product(device, "bfloat16"),
    "fp8": _fp8,
})  # fmt: skip


# --- launches ------------------------------------------------------------------------------------


def _resident_blocks(device: Any) -> int:
    """As many as the GPU holds at once."""
    return int(device.facts.sm_count * (device.facts.max_threads_per_sm // THREADS))


def _launch(
    device: Device, name: str, blocks: int, *arguments: Any, options: tuple[str, ...] = (), shared_bytes: int = 0
) -> Callable[[], None]:
    source = KernelSource(text=SOURCE, name=name, options=(*OPTIONS, *options))
    kernel = device.load(compile_kernel(source, device.facts.arch, cache=CompileCache()))
    return lambda: kernel(Configuration((blocks, 1, 1), (THREADS, 1, 1), shared_bytes), arguments)


def _best_s(device: Any, run: Callable[[], None]) -> float:
    timer: Timer = device.timer()
    return min(statistics.median(timer.measure([Slot(run, SAMPLES)], "warm")[0]) for _ in range(BATCHES)) / 1e9
