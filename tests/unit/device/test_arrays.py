"""Arrays of a GPU: what its generators are asked for, what is refused, and that they compile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device import arrays as arrays_module
from pytest_gpuperf.device import peaks
from pytest_gpuperf.device.arrays import CupyArrays, stream_of
from pytest_gpuperf.model.evidence import StaticProfile

ASKED: list[tuple[Any, ...]] = []
"""Generator, its numbers, and the array that it is to fill."""


class WithMemory(np.ndarray):  # type: ignore[type-arg]
    """An array with the ``data`` of CuPy's."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(memset_async=lambda value, size: self.view(np.uint8).reshape(-1).fill(value))


@pytest.fixture
def arrays() -> CupyArrays:
    ASKED.clear()

    def generator(inputs: str, outputs: str, code: str, name: str) -> Any:
        return lambda *given: ASKED.append((name, *given))

    def empty(shape: Any, dtype: Any) -> Any:
        return np.zeros(shape, dtype).view(WithMemory)

    return CupyArrays(SimpleNamespace(
        zeros=np.zeros, full=np.full, array=np.array, empty=empty, ElementwiseKernel=generator
    ))  # fmt: skip


def test_the_stream_of_a_seed_is_split_mix() -> None:
    assert stream_of(0) == 0xE220A8397B1DCDAF  # the published first output of SplitMix64
    assert len({stream_of(seed) for seed in range(-50, 50)}) == 100


@pytest.mark.parametrize(("dtype", "bounds", "asked", "filled"), [
    ("float16", (), ("gpuperf_uniform", 11, 2.0**-11, 0.0, 1.0), "float32[4,3]"),
    ("float32", (-2.0, 6.0), ("gpuperf_uniform", 24, 2.0**-24, -2.0, 8.0), "float32[4,3]"),
    ("float64", (), ("gpuperf_uniform", 53, 2.0**-53, 0.0, 1.0), "float64[4,3]"),
    ("complex64", (1, 2), ("gpuperf_uniform", 24, 2.0**-24, 1.0, 1.0), "float32[4,3,2]"),
    ("complex128", (), ("gpuperf_uniform", 53, 2.0**-53, 0.0, 1.0), "float64[4,3,2]"),
    ("int8", (-3, 5), ("gpuperf_whole", 2**64 - 3, 8), "int8[4,3]"),
    ("uint64", (), ("gpuperf_whole", 0, 100), "uint64[4,3]"),
    ("bool", (), ("gpuperf_whole", 0, 2), "uint8[4,3]"),
])  # fmt: skip
def test_random_numbers_are_uniform_in_their_range(
    arrays: CupyArrays, dtype: str, bounds: tuple[float, ...], asked: tuple[Any, ...], filled: str
) -> None:
    made = arrays.random((4, 3), dtype, seed=7, **dict(zip(("low", "high"), bounds, strict=False)))
    assert (made.shape, made.dtype) == ((4, 3), np.dtype(dtype))
    ((name, seed, *numbers, out),) = ASKED
    assert (name, *numbers) == asked
    assert seed == stream_of(7)
    assert f"{out.dtype}[{','.join(map(str, out.shape))}]" == filled


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("float32", 1, 1), ("float32", 2, None), ("float64", 0, float("inf")), ("float32", float("nan"), 1),
     ("int8", 0, 129), ("uint8", -1, 5), ("int32", 5, 5)],
)  # fmt: skip
def test_what_is_no_range_is_refused(arrays: CupyArrays, dtype: str, low: Any, high: Any) -> None:
    with pytest.raises(ValueError, match=r"gpu\.random: low=.* no range"):
        arrays.random(4, dtype, seed=1, low=low, high=high)


def test_an_empty_array_is_poisoned(arrays: CupyArrays) -> None:
    assert np.isnan(arrays.empty((3, 4))).all()
    assert (arrays.empty_like(arrays.zeros(5, "int32")) == -1).all()


def test_the_generators_compile() -> None:
    uniform = "unsigned long long seed, int bits, double step, double low, double span", arrays_module.UNIFORM
    whole = "unsigned long long seed, unsigned long long low, unsigned long long span", arrays_module.INTEGERS
    of_type = {"float": uniform, "double": uniform, "bool": whole, "char": whole, "int": whole, "long": whole}
    source = "".join(
        f"""extern "C" __global__ void fill_{name}({name}* all, {parameters})
        {{ typedef {name} T; long long i = threadIdx.x; T& out = all[i]; {code} }}"""
        for name, (parameters, code) in of_type.items()
    )
    assert compile_kernel(KernelSource(text=source, name="fill_char"), "sm_90").profile.spill_store_bytes == 0


# --- kernels of the measured peaks -----------------------------------------------------------------


def test_the_kernels_are_what_they_are_counted_as() -> None:
    def compiled(name: str, *options: str) -> StaticProfile:
        source = KernelSource(text=peaks.SOURCE, name=f"gpuperf_{name}", options=(*peaks.OPTIONS, *options))
        return compile_kernel(source, "sm_90").profile

    read, shared = compiled("read"), compiled("read", "-DIN_SHARED")
    assert read.opcodes["global_load"] == shared.opcodes["shared_load"] >= 4 * peaks.VECTORS  # unrolled
    for c_type, unit in (("float", "fp32"), ("double", "fp64"), ("unsigned", "integer")):
        chains = compiled("multiply_add", f"-DNUMBER={c_type}")
        assert chains.opcodes[unit] > 0.85 * chains.instructions
        assert chains.registers <= 32
    for one in (read, shared):
        assert one.registers <= 32  # full occupancy
        assert one.spill_store_bytes == 0
