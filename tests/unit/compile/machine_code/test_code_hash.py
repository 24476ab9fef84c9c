"""What makes two kernels the same machine code, and what does not: compiled for real, on four generations."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from pytest_gpuperf.compile.machine_code.code_hash import code_hash
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.symbols import find_kernel
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.source import KernelSource

ARCHS = ("sm_75", "sm_90", "sm_100", "sm_120")

BASE = """
__constant__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ int offsets[8] = {5, 6, 7};
__device__ __noinline__ float helper(float value) { return value * value / 3.3f + table[1]; }
__device__ float inlined(float value) { return value + 2.5f; }
extern "C" __global__ void __launch_bounds__(256) kernel(float* out, const float* in, int n) {
    __shared__ float tile[256];
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = in[index];
    __syncthreads();
    if (index < n) out[index] = helper(tile[255 - threadIdx.x]) + inlined(out[index]) + offsets[index & 7];
}
"""
NEIGHBOUR = """
__device__ __noinline__ double other_helper(double value) { return value / 7.7; }
extern "C" __global__ void neighbour(double* out) {
    __shared__ double tile[64];
    tile[threadIdx.x] = other_helper(out[threadIdx.x % 3]);
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x] * 7.7;
}
"""
WITH_CONSTANTS = """
__constant__ double other_table[3] = {7.0, 8.0, 9.0};
__device__ int other_offsets[5] = {1, 2};
extern "C" __global__ void reader(double* out) {
    out[threadIdx.x] = other_table[threadIdx.x % 3] + other_offsets[threadIdx.x % 5];
    if (out[0] < 0) printf("value %f\\n", out[0]);
}
"""
INDEXED = """
__constant__ float weights[4] = {1.0f, 2.0f, 3.0f, 4.0f};
extern "C" __global__ void kernel(float* out) { out[threadIdx.x] = weights[threadIdx.x & 3]; }
"""
POINTERS = """
__device__ float left(float value) { return value + 1.0f; }
__device__ float right(float value) { return value * 2.0f; }
typedef float (*function)(float);
__device__ function functions[2] = {left, right};
extern "C" __global__ void kernel(float* out) { out[threadIdx.x] = functions[threadIdx.x & 1](out[threadIdx.x]); }
"""
HUNGRY = """
extern "C" __global__ void __launch_bounds__(256, 1) kernel(float* data) {
    float kept[64];
    for (int i = 0; i < 64; i++) kept[i] = data[i * 32 + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 64; i++) data[i * 32 + threadIdx.x] = kept[i] * kept[63 - i];
}
"""
PAIR = """
__constant__ double first = 1.0;
__constant__ double second = 2.0;
__device__ int left[2] = {1, 2};
__device__ int right[2] = {3, 4};
extern "C" __global__ void kernel(double* out, int** where) {
    out[0] = first; out[1] = second; out[2] = first + second * out[3];
    where[0] = left; where[1] = right;
}
"""


@functools.cache
def hashes(text: str, name: str = "kernel", options: tuple[str, ...] = (), path: Path | None = None) -> tuple[str, ...]:
    cubins = (read_cubin(compile_cubin(KernelSource(text, name, path, options), arch).cubin) for arch in ARCHS)
    return tuple(code_hash(cubin, cubin.kernels[find_kernel(name, cubin.kernels, "here")]) for cubin in cubins)


def changed(old: str, new: str, text: str = BASE) -> str:
    assert old in text
    return text.replace(old, new)


EQUAL = {
    "an added comment": (BASE, changed("__syncthreads();", "__syncthreads();  // all loaded\n\n\n")),
    "a renamed local variable": (BASE, changed("index", "position")),
    "a renamed helper": (BASE, changed("helper(", "a_helper_of_quite_another_name(")),
    "a renamed constant": (BASE, changed("table", "zz_table")),
    "another kernel before it": (BASE, NEIGHBOUR + BASE),
    "another kernel behind one that indexes constants": (INDEXED, INDEXED + NEIGHBOUR),
    "another kernel with constants and messages behind one without": (HUNGRY, HUNGRY + WITH_CONSTANTS),
    "another kernel with constants and messages before one without": (HUNGRY, WITH_CONSTANTS + HUNGRY),
    "another kernel before one that reads neighbouring constants": (PAIR, NEIGHBOUR + PAIR),
    "renamed functions behind pointers": (POINTERS, POINTERS.replace("left", "zleft").replace("right", "aright")),
}


@pytest.mark.parametrize("what", EQUAL)
def test_hash_is_equal_for(what: str) -> None:
    before, after = EQUAL[what]
    assert before != after
    assert hashes(before) == hashes(after)


DIFFERENT = {
    "a changed constant in the code": (BASE, changed("2.5f", "2.75f")),
    "a changed initialiser of a __constant__": (BASE, changed("2.0f, 3.0f", "2.5f, 3.0f")),
    "a changed initialiser of a __device__ variable": (BASE, changed("{5, 6, 7}", "{5, 6, 8}")),
    "a changed __noinline__ helper": (BASE, changed("/ 3.3f", "/ 3.4f")),
    "launch bounds that change registers": (HUNGRY, changed("(256, 1)", "(256, 6)", HUNGRY)),
    "a changed shared size": (BASE, changed("tile[256]", "tile[512]")),
    "an added parameter": (BASE, changed("int n)", "int n, int unused)")),
    "an indexed __constant__": (INDEXED, changed("4.0f", "5.0f", INDEXED)),
    "the second of two neighbouring constants": (PAIR, changed("2.0", "2.5", PAIR)),
    "the second of two neighbouring addresses": (PAIR, changed("{3, 4}", "{3, 5}", PAIR)),
    "a function behind a pointer": (POINTERS, changed("* 2.0f", "* 3.0f", POINTERS)),
    "another kernel with constants, which count whole": (INDEXED, INDEXED + WITH_CONSTANTS),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_hash_differs_for(what: str) -> None:
    before, after = DIFFERENT[what]
    for old, new in zip(hashes(before), hashes(after), strict=True):
        assert old != new


def test_line_tables_files_and_names_are_not_in_the_hash_options_and_architectures_are() -> None:
    for others in (
        hashes(BASE, options=("-lineinfo",)), hashes(BASE, path=Path("/somewhere/else.cu")),
        hashes(changed("kernel(", "renamed("), name="renamed"), hashes(changed('extern "C" ', "")),
    ):  # fmt: skip
        assert others == hashes(BASE)
    assert hashes(BASE) != hashes(BASE, options=("-use_fast_math",))
    assert len(set(hashes(BASE))) == len(ARCHS)
