"""Causes and verdicts of kernels that are compiled here, without a GPU; no threshold was settled with them.

Proven causes gate; measured time outranks what the machine code of its own GPU says.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from suite_under_test import Suite, sections, with_baselines

ARCHS = ("sm_80", "sm_90", "sm_120")
TOP = """
extern "C" __global__ void top(const float* x, float* y, int steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float acc[16] = {};
    for (int k = 0; k < steps; ++k) {
        float v = x[k * n + i];
        acc[INDEX] += v;
    }
#pragma unroll
    for (int k = 0; k < 16; ++k) y[k * n + i] = acc[k];
}
"""
GELU = """
extern "C" __global__ void gelu(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    if (i < n) y[i] = HALF * v * (ONE + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
}
"""
TRANSPOSE = """
extern "C" __global__ void transpose(const float* in, float* out, int n)
{
    __shared__ float tile[32][32 + PAD];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) out[(y + k) * n + x] = tile[threadIdx.x][threadIdx.y + k];
}
"""
AXPY = """
#ifdef NARROW
#define Wide float
#else
#define Wide float4
#endif
__device__ float fma_of(float a, float x, float y) { return a * x + y; }
__device__ float4 fma_of(float a, float4 x, float4 y)
{
    return make_float4(a * x.x + y.x, a * x.y + y.y, a * x.z + y.z, a * x.w + y.w);
}
extern "C" __global__ void axpy(const Wide* x, Wide* y, float a, int n)
{
    int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) y[i] = fma_of(a, x[i], y[i]);
}
"""
COUNT = """
extern "C" __global__ void count(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
#ifdef TRACE
    if (i < n && x[i] < 0) printf("below zero: %d\\n", i);
#endif
}
"""


class Edit(NamedTuple):
    """A test of a kernel whose options change, and what is found of it."""

    kernel: str
    launch: str
    before: list[str]
    after: list[str]
    verdict: str = "WORSE"
    cause: str = ""
    line: str = ""
    """Text in the line at fault."""


N_THREADS = "grid=N // 256, block=256, args="
TILES = "grid=(2, 2), block=(32, 8), args=(gpu.random((64, 64), seed=1), gpu.empty((64, 64)), 64)"
FLOATS = "gpu.random(N, seed=1), gpu.empty(N)"
EDITS = {
    "top": Edit("top", f"{N_THREADS}(gpu.random((32, N), seed=1), gpu.empty((16, N)), 32, N)", ["-DINDEX=0"],
                ["-DINDEX=((int)(v*16)&15)"], cause="stack from run-time indexing", line="acc[INDEX]"),
    "count": Edit("count", f"{N_THREADS}({FLOATS}, N)", ["-DPLAIN"], ["-DTRACE"],
                  cause="address of a local variable", line="printf"),
    "gelu": Edit("gelu", f"{N_THREADS}({FLOATS}, N)", ["-DHALF=0.5f", "-DONE=1.0f"], ["-DHALF=0.5", "-DONE=1.0"],
                 cause="double-precision literals", line="tanhf"),
    "axpy": Edit("axpy", f"grid=4, block=256, args=({FLOATS}, 2.0, N // 4)", ["-DWIDE"], ["-DNARROW"],
                 cause="lost vectorisation", line="y[i] = fma_of"),
    "transpose": Edit("transpose", TILES, ["-DPAD=1"], ["-DPAD=0"], cause="bank conflicts", line="out[(y + k)"),
    "padded": Edit("transpose", TILES, ["-DPAD=0"], ["-DPAD=1"], verdict="SAME"),
}  # fmt: skip


def text_of_tests(*, after: bool) -> str:
    """Of the test file, before or after all edits."""
    return "N = 4096\n" + "".join(
        f"\ndef test_{name}(cuda_kernel, gpu, gpuperf):\n"
        f"    kernel = cuda_kernel('{edit.kernel}.cu', '{edit.kernel}', options={edit[2 + after]})\n"
        f"    gpuperf(kernel.launch({edit.launch}))\n"
        for name, edit in EDITS.items()
    )


FILES = {
    "top.cu": TOP, "gelu.cu": GELU, "transpose.cu": TRANSPOSE, "axpy.cu": AXPY, "count.cu": COUNT,
    "test_suite.py": text_of_tests(after=False),
}  # fmt: skip


@pytest.fixture
def kernels(suite: Suite, shared_folder: Path) -> Suite:
    """Without a GPU, with baselines for three architectures."""
    archs = f"--gpuperf-arch={','.join(ARCHS)}"
    return with_baselines(suite, shared_folder / "causes", FILES, "--update-baselines", archs, CUDA_VISIBLE_DEVICES="")


def causes(section: str) -> list[str]:
    return [line for line in section.splitlines() if "cause:" in line]


def test_changes_have_their_verdict_and_the_cause_of_the_first_red_architecture(kernels: Suite) -> None:
    kernels.write("test_suite.py", text_of_tests(after=True))
    result = kernels.run("--gpuperf")
    red = {name for name, edit in EDITS.items() if edit.verdict == "WORSE"}
    said = sections(result)
    assert said.keys() == red
    found = {(one["test"].removeprefix("test_"), one["verdict"]) for one in kernels.judgements()}
    assert {one for one in found if one[0] not in red} == {(name, "SAME") for name in EDITS.keys() - red}
    for name in red:
        assert (name, "WORSE") in found
        assert f"cause: {EDITS[name].cause}" in causes(said[name])[0], name
        text = FILES[f"{EDITS[name].kernel}.cu"].splitlines()
        (line,) = (number for number, code in enumerate(text, 1) if EDITS[name].line in code)
        assert f" {EDITS[name].kernel}.cu:{line}" in said[name], name
    for name in ("top", "gelu"):
        (cause,) = causes(said[name])
        assert f"{EDITS[name].cause} (sm_80)" in cause
    assert "run-time indexing" not in said["count"]
    assert ".cu:9 shared load: 1 -> 32 wavefronts per request; wavefronts per shared" in " ".join(
        said["transpose"].split()
    )
    assert "transpose  WORSE  on sm_80, sm_90, sm_120 (static)" in said["transpose"]


@pytest.mark.parametrize("arch", ARCHS[1:])
def test_stack_has_its_cause_in_each_architecture(kernels: Suite, arch: str) -> None:
    kernels.write("test_suite.py", text_of_tests(after=True))
    said = sections(kernels.run("--gpuperf", "-k", "top or count", f"--gpuperf-arch={arch}"))
    for name in ("top", "count"):
        assert f"cause: {EDITS[name].cause} ({arch})" in causes(said[name])[0]
    assert len(causes(said["top"])) == 1


def test_nothing_is_likely_in_code_that_did_not_change(kernels: Suite) -> None:
    for name in ("gelu.cu", "axpy.cu"):
        kernels.edit(name, "extern", "/* the same */ extern")
    kernels.edit("test_suite.py", f"{N_THREADS}({FLOATS}, N)", f"grid=N // 128, block=128, args=({FLOATS}, N)")
    result = kernels.run("--gpuperf", "-k", "gelu or axpy or count")
    assert "; likely " not in result.stdout.str()


@pytest.mark.parametrize(("steps", "status", "static"), [(60, 0, "SAME"), (120, 1, "WORSE")])
def test_worse_code_that_is_faster_is_a_note(recorded: Suite, steps: int, status: int, static: str) -> None:
    recorded.edit("work.cu", "float x = a[i];", "float x = (float)((double)a[i] * 1.1);")
    recorded.edit("test_suite.py", "-DSTEPS=100", f"-DSTEPS={steps}")
    assert recorded.run("--gpuperf", "-k", "1024").ret == status
    (found,) = (one for one in recorded.judgements() if one["kind"] == "static")
    assert found["verdict"] == static
    assert found["reason"].startswith("worse, not slower: ") is (static == "SAME")
    assert "instructions: fp64" in found["reason"]
