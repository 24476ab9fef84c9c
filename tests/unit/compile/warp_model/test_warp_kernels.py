"""Dry runs of compiled kernels, on three generations: sectors, bank conflicts and splits that nobody had to measure."""

from __future__ import annotations

import re
from collections.abc import Callable
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
def runs(request: pytest.FixtureRequest, cache: CompileCache) -> dict[str, WarpEstimate | None]:
    """Of all kernels, by name: one run of nvdisasm reads them."""
    arch = request.param
    made = [compile_kernel(KernelSource(TEXT, name), arch, cache=cache) for name in KERNEL.findall(TEXT)]
    codes = {one.name: (None, KernelCode(one.cubin, one.symbol, arch)) for one in made}
    estimates = estimates_of(codes.values(), cache)
    return {name: estimates[code][1] for name, code in codes.items()}


@pytest.fixture
def run_of(runs: dict[str, WarpEstimate | None]) -> Callable[[str], WarpEstimate]:
    def run(name: str) -> WarpEstimate:
        found = runs[name]
        assert found is not None
        return found

    return run


def only(run: WarpEstimate, op: str) -> Access:
    (access,) = (access for access in run.accesses if access.op == op)
    return access


def test_a_row_takes_four_sectors_and_a_column_thirty_two(run_of) -> None:  # type: ignore[no-untyped-def]
    assert only(run_of("rows"), "global_store").sectors == 4
    assert only(run_of("columns"), "global_store").sectors == 32


def test_a_pitch_that_only_the_caller_knows_scatters(run_of) -> None:  # type: ignore[no-untyped-def]
    assert only(run_of("pitched"), "global_load").sectors == 32


def test_a_shifted_row_touches_a_fifth_sector(run_of) -> None:  # type: ignore[no-untyped-def]
    load = only(run_of("shifted"), "global_load")
    assert (load.sectors, load.turns) == (5, 2)


def test_sixteen_bytes_per_lane_take_sixteen_sectors(run_of) -> None:  # type: ignore[no-untyped-def]
    load = only(run_of("wide"), "global_load")
    assert (load.bytes, load.sectors, load.distinct) == (16, 16, 512)


def test_addresses_that_data_decide_are_unknown(run_of) -> None:  # type: ignore[no-untyped-def]
    unknown = [a for a in run_of("gathered").accesses if a.op == "global_load" and a.sectors is None]
    assert len(unknown) == 1


def test_a_column_of_a_tile_conflicts_unless_it_is_padded(run_of) -> None:  # type: ignore[no-untyped-def]
    assert only(run_of("tile32"), "shared_load").turns == 32
    assert only(run_of("tile33"), "shared_load").turns == 1
    assert only(run_of("tile32"), "shared_store").turns == 1


def test_a_single_lane_writes_a_single_sector(run_of) -> None:  # type: ignore[no-untyped-def]
    assert all(a.lanes == 1 and a.sectors == 1 for a in run_of("last_lane").accesses)


def test_an_index_divided_by_an_argument_is_followed(run_of) -> None:  # type: ignore[no-untyped-def]
    run = run_of("linear")
    assert only(run, "global_load").sectors in (4, 5)
    assert run.divisions >= 1


def test_an_unrolled_loop_loads_as_often_as_it_says(run_of) -> None:  # type: ignore[no-untyped-def]
    assert sum(a.times for a in run_of("adds").accesses if a.op == "global_load") == pytest.approx(256, rel=0.1)


def test_every_byte_of_every_array_is_counted_as_new_once(run_of) -> None:  # type: ignore[no-untyped-def]
    """Four elements by each lane: two loads and a store of 128 bytes for each."""
    run = run_of("axpy_rolled")
    load, store = only(run, "global_load"), only(run, "global_store")
    assert (load.times, load.sectors, load.distinct) == (8, 4, 1024)
    assert (store.times, store.sectors, store.distinct) == (4, 4, 512)


def test_a_tree_has_a_barrier_for_each_of_its_steps(run_of) -> None:  # type: ignore[no-untyped-def]
    assert run_of("tree").executed["barrier"] == 1 + 8


def test_what_is_stored_to_be_read_again_is_scratch(run_of) -> None:  # type: ignore[no-untyped-def]
    """One store of the result and one of scratch, which look alike, for each of the elements."""
    written = only(run_of("two_passes"), "global_store")
    assert written.scratch == written.distinct / 2


def test_a_sum_that_is_kept_in_memory_is_no_scratch(run_of) -> None:  # type: ignore[no-untyped-def]
    """It is read again, but written last."""
    assert [a.scratch for a in run_of("again").accesses] == [0] * len(run_of("again").accesses)


def test_bytes_touched_again_are_not_counted_as_new(run_of) -> None:  # type: ignore[no-untyped-def]
    stores = [a for a in run_of("again").accesses if a.op == "global_store"]
    assert sum(a.times for a in stores) == 10
    assert sum(a.distinct for a in stores) == 128
