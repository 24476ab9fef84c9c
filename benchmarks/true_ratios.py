"""``gpuperf.compare`` on pairs whose true ratio is known, and beside libraries: what share is right?

    python benchmarks/true_ratios.py [--repeats 5]

Needs a GPU, CuPy and PyTorch.  A chain of so many steps is compared with one of 4,000, which is gated at 1.00: a longer
one is SLOWER, a shorter or equal one is not.  Exit status 1 if a verdict is wrong.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = """
extern "C" __global__ void chain(float* out, int steps)
{
    float x = threadIdx.x;
    for (int i = 0; i < steps; ++i) x = x * 0.99f + 1.0f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
extern "C" __global__ void doubled(const float4* in, float4* out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = in[i];
    out[i] = make_float4(2.0f * v.x, 2.0f * v.y, 2.0f * v.z, 2.0f * v.w);
}
"""
SUITE = """
import pytest

@pytest.mark.parametrize("number", range(REPEATS))
@pytest.mark.parametrize("steps", [3920, 4000, 4080, 4400])
def test_chain(cuda_kernel, gpu, gpuperf, steps, number):
    kernel, arrays = cuda_kernel("kernels.cu", "chain"), [gpu.empty(1 << 18) for _ in range(2)]
    ours, reference = (kernel.launch(1024, 256, (y, n)) for y, n in zip(arrays, (steps, 4000)))
    gpuperf.compare({"ours": ours, "reference": reference}, reference="reference", at_most=1.0)

@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_library(cuda_kernel, gpu, gpuperf, library):
    module = pytest.importorskip(library)
    x = gpu.random(1 << 26, seed=1)
    y, given = gpu.empty_like(x), module.asarray(x) if library == "cupy" else module.as_tensor(x, device="cuda")
    launch = cuda_kernel("kernels.cu", "doubled").launch(1 << 16, 256, (x, y))
    works = {"ours": lambda: (launch(), y)[1], library: lambda: given * 2}
    gpuperf.compare(works, reference=library, at_least=0.8, outputs=True)

def test_library_cub(cuda_kernel, gpu, gpuperf):
    cub = pytest.importorskip("cupy.cuda.cub")
    x, total = gpu.random(1 << 26, seed=1), gpu.empty(1)
    partial = gpu.empty(x.size // 16384)
    kernel = cuda_kernel("reduce_sum.cu", "reduce_grid_stride")
    first = kernel.launch(partial.size, 256, (x, partial, x.size))
    second = kernel.launch(1, 256, (partial, total, partial.size))
    works = {"ours": lambda: (first(), second()), "cub": lambda: cub.device_reduce(x, cub.CUPY_CUB_SUM, (0,), ())}
    gpuperf.compare(works, reference="cub", at_least=0.8)
"""
SUM = Path(__file__).parent.parent / "example_suite" / "kernels" / "reduce_sum.cu"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernels.cu").write_text(KERNELS, encoding="utf-8")
        (folder / SUM.name).write_bytes(SUM.read_bytes())
        (folder / "test_ratios.py").write_text(SUITE.replace("REPEATS", str(repeats)), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "--gpuperf", "-q", "--durations=0", "--gpuperf-tolerance=tight",
                   "--gpuperf-report=report.json"]  # fmt: skip
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        print(done.stdout[-4000:])
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    found = collections.defaultdict(list)
    for test in report["tests"]:
        for work in test.get("workloads", ()):
            judged = [one for one in work.get("judgements", ()) if one["kind"] == "time"]
            found[re.split(r"[\[\]-]", test["test"] + "[cub")[1]] += judged
    wrong = 0
    print("| case | right | ratios |\n|---|---|---|")
    for case, judged in found.items():
        due = "SLOWER" if case in ("4080", "4400") else "SAME"
        right = sum(one["verdict"] == due for one in judged)
        wrong += len(judged) - right
        ratios = [one["time"]["ratio"] for one in judged]
        print(f"| {case} | {right} of {len(judged)} {due} | {min(ratios):.4f} to {max(ratios):.4f} |")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
