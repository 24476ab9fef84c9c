"""Dry runs of compiled kernels, on three generations: sectors, bank conflicts and splits that nobody had to measure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.warp_model.estimate import KernelCode, estimates_of
from pytest_gpuperf.model.warp_estimate import Access, WarpEstimate

TEXT = r"""
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" __global__ void rows(const float* in, float* out) {
    out[threadIdx.y * 32 + threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
}
extern "C" __global__ void columns(const float* in, float* out) {
    out[threadIdx.x * 32 + threadIdx.y] = in[threadIdx.y * 32 + threadIdx.x];
}
extern "C" __global__ void pitched(const float* in, float* out, int pitch) {
    out[INDEX] = in[INDEX * pitch];
}
extern "C" __global__ void shifted(const float* in, float* out) { out[INDEX] = in[INDEX + 1]; }
extern "C" __global__ void wide(const float4* in, float4* out) { out[INDEX] = in[INDEX]; }
extern "C" __global__ void gathered(const float* in, const int* from, float* out) { out[INDEX] = in[from[INDEX]]; }
template <int Width> __device__ void through_tile(const float* in, float* out) {
    __shared__ float tile[32][Width];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
extern "C" __global__ void tile32(const float* in, float* out) { through_tile<32>(in, out); }
extern "C" __global__ void tile33(const float* in, float* out) { through_tile<33>(in, out); }
extern "C" __global__ void last_lane(float* out) { if (threadIdx.x % 32 == 31) out[threadIdx.x / 32] = 1.0f; }
extern "C" __global__ void linear(const float* in, float* out, int width, int count) {
    int index = INDEX;
    if (index >= count) return;
    out[index] = in[index / width * (width + 2) + index % width];
}
extern "C" __global__ void adds(const float* in, float* out, int n) {
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) sum += in[i * blockDim.x + threadIdx.x];
    out[INDEX] = sum;
}
extern "C" __global__ void axpy_rolled(float a, const float* __restrict__ x, float* __restrict__ y, int n) {
    int stride = gridDim.x * blockDim.x;
    #pragma unroll 1
    for (int i = INDEX; i < n; i += stride) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void tree(const float* in, float* out) {
    extern __shared__ float sums[];
    sums[threadIdx.x] = in[INDEX];
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}
extern "C" __global__ void again(const float* in, float* out) {
    for (int k = 0; k < 10; ++k) out[INDEX] += in[INDEX];
}
extern "C" __global__ void two_passes(const float* in, float* out, float* scratch, int n, int pitch) {
    float largest = 0.0f;
    for (int i = 0; i < n; ++i) {
        float value = in[i * pitch + INDEX];
        scratch[i * pitch + INDEX] = value;
        largest = fmaxf(largest, value);
    }
    for (int i = 0; i < n; ++i) out[i * pitch + INDEX] = largest - scratch[i * pitch + INDEX];
}
"""
ARCHS = ("sm_80", "sm_90", "sm_120")


KERNEL = re.compile(r'extern "C" __global__ void (\w+)\(')


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> CompileCache:
    return CompileCache(Path(tmp_path_factory.mktemp("compiled")))


@pytest.fixture(scope="module", params=ARCHS)
def runs(request: pytest.FixtureRequest, cache: CompileCache) -> dict[str, WarpEstimate]:
    """Of all kernels, by name: one run of nvdisasm reads them."""
    arch = request.param
    made = [compile_kernel(KernelSource(TEXT, name), arch, cache=cache) for name in KERNEL.findall(TEXT)]
    codes = {one.name: (None, KernelCode(one.cubin, one.symbol, arch)) for one in made}
    estimates = estimates_of(codes.values(), cache)
    return {name: found for name, code in codes.items() if (found := estimates[code][1]) is not None}


def only(run: WarpEstimate, op: str) -> Access:
    (access,) = (access for access in run.accesses if access.op == op)
    return access


ACCESSES: list[tuple[str, str, dict[str, float | None]]] = [
    ("rows", "global_store", {"sectors": 4}),
    ("columns", "global_store", {"sectors": 32}),
    ("pitched", "global_load", {"sectors": 32}),  # by what the caller alone knows
    ("shifted", "global_load", {"sectors": 5, "turns": None}),
    ("wide", "global_load", {"bytes": 16, "sectors": 16, "distinct": 512}),
    ("tile32", "shared_load", {"turns": 32}),
    ("tile33", "shared_load", {"turns": 1}),
    ("tile32", "shared_store", {"turns": 1}),
    ("last_lane", "global_store", {"lanes": 1, "sectors": 1}),
    # four elements by each lane: two loads and a store of 128 bytes for each
    ("axpy_rolled", "global_load", {"times": 8, "sectors": 4, "distinct": 1024}),
    ("axpy_rolled", "global_store", {"times": 4, "sectors": 4, "distinct": 512}),
]


def test_accesses_have_their_sectors_turns_and_bytes(runs: dict[str, WarpEstimate]) -> None:
    for kernel, op, figures in ACCESSES:
        found = only(runs[kernel], op)
        assert {name: getattr(found, name) for name in figures} == figures, kernel


def test_addresses_that_data_decide_are_unknown(runs: dict[str, WarpEstimate]) -> None:
    unknown = [a for a in runs["gathered"].accesses if a.op == "global_load" and a.sectors is None]
    assert len(unknown) == 1


def test_a_division_by_an_argument_is_counted(runs: dict[str, WarpEstimate]) -> None:
    assert runs["linear"].divisions >= 1


def test_an_unrolled_loop_loads_as_often_as_it_says(runs: dict[str, WarpEstimate]) -> None:
    assert sum(a.times for a in runs["adds"].accesses if a.op == "global_load") == pytest.approx(256, rel=0.1)


def test_a_tree_has_a_barrier_for_each_of_its_steps(runs: dict[str, WarpEstimate]) -> None:
    assert runs["tree"].executed["barrier"] == 1 + 8


def test_what_is_stored_to_be_read_again_is_scratch_unless_it_is_written_last(runs: dict[str, WarpEstimate]) -> None:
    """One store of the result and one of scratch, which look alike, for each of the elements."""
    written = only(runs["two_passes"], "global_store")
    assert written.scratch == written.distinct / 2
    assert {a.scratch for a in runs["again"].accesses} == {0}


def test_bytes_touched_again_are_not_counted_as_new(runs: dict[str, WarpEstimate]) -> None:
    stores = [a for a in runs["again"].accesses if a.op == "global_store"]
    assert (sum(a.times for a in stores), sum(a.distinct for a in stores)) == (10, 128)
