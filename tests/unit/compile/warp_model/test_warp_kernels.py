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
extern "C" __global__ void bytes(const char* in, char* out) { out[64 * INDEX] = in[64 * INDEX]; }
extern "C" __global__ void gathered(const float* in, const int* from, float* out) { out[INDEX] = in[from[INDEX]]; }
template <int Width> __device__ void through_tile(const float* in, float* out) {
    __shared__ float tile[32][Width];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
extern "C" __global__ void tile32(const float* in, float* out) { through_tile<32>(in, out); }
extern "C" __global__ void tile33(const float* in, float* out) { through_tile<33>(in, out); }
template <int Pitch> __device__ void by_matrices(unsigned* out) {
    __shared__ __align__(16) short tile[16 * Pitch];
    unsigned a, b, c, d, row = __cvta_generic_to_shared(tile + threadIdx.x % 16 * Pitch + threadIdx.x / 16 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(row));
    out[threadIdx.x] = a + b + c + d;
}
extern "C" __global__ void matrices32(unsigned* out) { by_matrices<32>(out); }
extern "C" __global__ void matrices40(unsigned* out) { by_matrices<40>(out); }
extern "C" __global__ void last_lane(float* out) { if (threadIdx.x % 32 == 31) out[threadIdx.x / 32] = 1.0f; }
extern "C" __global__ void totals(const float* in, float* out) {
    __shared__ float part[32];
    atomicAdd(out + INDEX / 8, in[INDEX]);
    atomicMax((int*)part + threadIdx.x % 2, threadIdx.x);
}
extern "C" __global__ void axpy_rolled(float a, const float* __restrict__ x, float* __restrict__ y, int n) {
    int stride = gridDim.x * blockDim.x;
    #pragma unroll 1
    for (int i = INDEX; i < n; i += stride) y[i] = a * x[i] + y[i];
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
    ("shifted", "global_load", {"sectors": 5, "wavefronts": None}),
    ("wide", "global_load", {"bytes": 16, "sectors": 16, "distinct": 512}),
    ("bytes", "global_store", {"sectors": 32, "distinct": 32}),
    ("tile32", "shared_load", {"wavefronts": 32}),
    ("tile33", "shared_load", {"wavefronts": 1}),
    ("tile32", "shared_store", {"wavefronts": 1}),
    ("matrices32", "shared_load", {"wavefronts": 16, "bytes": 16}),
    ("matrices40", "shared_load", {"wavefronts": 4, "bytes": 16}),
    ("last_lane", "global_store", {"lanes": 1, "sectors": 1}),
    ("totals", "atomic_global", {"lanes": 32, "wavefronts": 8, "sectors": None}),
    ("totals", "atomic_shared", {"wavefronts": 1}),
    # four elements by each lane: two loads and a store of 128 bytes for each
    ("axpy_rolled", "global_load", {"times": 8, "sectors": 4, "distinct": 1024}),
    ("axpy_rolled", "global_store", {"times": 4, "sectors": 4, "distinct": 512}),
]


def test_accesses_have_their_sectors_wavefronts_and_bytes(runs: dict[str, WarpEstimate]) -> None:
    for kernel, op, figures in ACCESSES:
        found = only(runs[kernel], op)
        assert {name: getattr(found, name) for name in figures} == figures, kernel
    unknown = [a for a in runs["gathered"].accesses if a.op == "global_load" and a.sectors is None]
    assert len(unknown) == 1  # data decide about its addresses
