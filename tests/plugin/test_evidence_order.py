"""Proven causes gate without a GPU; measured time outranks what the machine code of its own GPU says."""

from __future__ import annotations

import json

import pytest

TILE = """
extern "C" __global__ void turned(const float* in, float* out, int n)
{
    __shared__ float tile[32][32 + PAD];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    const int u = blockIdx.y * 32 + threadIdx.x, v = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(v + j) * n + u] = tile[threadIdx.x][threadIdx.y + j];
}
"""
TILE_TEST = """
def test_turned(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("turned.cu", "turned", options=["-DPAD=1"])
    a = gpu.random((1024, 1024), seed=1)
    gpuperf(kernel.launch(grid=(32, 32), block=(32, 8), args=(a, gpu.empty_like(a), 1024)))
"""
ARCHS = "--gpuperf-arch=sm_80,sm_90"


def turned_suite(suite, pad):
    suite.write("turned.cu", TILE)
    suite.write("test_turned.py", TILE_TEST.replace("PAD=1", f"PAD={pad}"))
    assert suite.run("--update-baselines", ARCHS, "test_turned.py").ret == 0
    return suite


def verdicts(suite):
    document = json.loads((suite.path / ".gpuperf/last-run.json").read_text())
    return {
        (judgement["kind"], judgement["target"]): (judgement["verdict"], judgement["reason"])
        for test in document["tests"]
        for work in test["workloads"]
        for judgement in work["judgements"]
    }


def test_proven_bank_conflicts_gate_without_a_gpu(suite):
    turned_suite(suite, 1).edit("test_turned.py", "PAD=1", "PAD=0")
    result = suite.run("--gpuperf", "test_turned.py")
    assert result.ret == 1
    result.stdout.re_match_lines(
        [r"turned  WORSE  on sm_80, sm_90 \(static\)", r" +passes per shared-memory access 1 -> 16.5"]
    )


def test_conflicts_taken_away_are_not_worse(suite):
    turned_suite(suite, 0).edit("test_turned.py", "PAD=0", "PAD=1")
    assert suite.run("--gpuperf", "test_turned.py").ret == 0
    assert {verdict for verdict, _ in verdicts(suite).values()} == {"SAME"}


TREE = """
extern "C" __global__ void summed(const float* in, float* out)
{
    __shared__ float sums[256];
    const unsigned me = threadIdx.x;
    sums[me] = in[blockIdx.x * 256 + me];
    __syncthreads();
    for (unsigned gap = FIRST; gap GOES_ON; gap NEXT) {
        const unsigned place = PLACE;
        if (TAKES_PART) sums[place] += sums[place + gap];
        __syncthreads();
    }
    if (me == 0) out[blockIdx.x] = sums[0];
}
"""
UPWARDS = ["-DFIRST=1", "-DGOES_ON=< blockDim.x", "-DNEXT=*= 2"]
SIFTED = [*UPWARDS, "-DPLACE=me", "-DTAKES_PART=me % (2 * gap) == 0"]
SPREAD = [*UPWARDS, "-DPLACE=2 * gap * me", "-DTAKES_PART=place < blockDim.x"]
HALVED = ["-DFIRST=blockDim.x / 2", "-DGOES_ON=> 0", "-DNEXT=>>= 1", "-DPLACE=me", "-DTAKES_PART=me < gap"]
"""Three ways to sum up a block: by remainders in warps that all take part, by strides with conflicts, by halves."""
TREE_TEST = """
def test_summed(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("summed.cu", "summed", options={options})
    a = gpu.random((4096 * 256,), seed=1)
    gpuperf(kernel.launch(grid=(4096,), block=(256,), args=(a, gpu.empty((4096,), dtype="float32"))))
"""


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (SIFTED, SPREAD, "SAME"),
        (SPREAD, SIFTED, "SAME"),
        (SPREAD, HALVED, "SAME"),
        (HALVED, SPREAD, "WORSE"),
        (SIFTED, HALVED, "SAME"),
        (HALVED, SIFTED, "SAME"),
    ],
)
def test_conflicts_gate_but_for_what_they_are_the_price_of(suite, before, after, verdict):
    """Strides in the place of remainders have conflicts, and are faster: warps without a part retire."""
    suite.write("summed.cu", TREE)
    suite.write("test_summed.py", TREE_TEST.format(options=before))
    assert suite.run("--update-baselines", f"{ARCHS},sm_120", "test_summed.py").ret == 0
    suite.write("test_summed.py", TREE_TEST.format(options=after))
    assert suite.run("--gpuperf", "test_summed.py").ret == (verdict == "WORSE")
    assert {found for found, _ in verdicts(suite).values()} == {verdict}


@pytest.mark.parametrize(("steps", "status", "static"), [(60, 0, "SAME"), (120, 1, "WORSE")])
def test_worse_code_that_is_faster_is_a_note_and_worse_code_that_is_slower_is_red(recorded, steps, status, static):
    recorded.edit("work.cu", "float x = a[i];", "float x = (float)((double)a[i] * 1.1);")
    recorded.edit("test_suite.py", "-DSTEPS=100", f"-DSTEPS={steps}")
    assert recorded.run("--gpuperf", "-k", "1024").ret == status
    (found,) = [one for (kind, _), one in verdicts(recorded).items() if kind == "static"]
    assert found[0] == static
    assert found[1].startswith("worse, not slower: ") is (static == "SAME")
    assert "instructions: fp64" in found[1]
