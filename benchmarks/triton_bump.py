"""Another version of Triton as the other environment: which kernels are red?

    python benchmarks/triton_bump.py OTHER_ENVIRONMENT

Needs a Triton here and another one there, and a GPU for times.  ``turn`` spills more with Triton 3.3 than with 3.6 for
sm_90; the other kernels are about as fast with both.  So run it by the Python that has the older one.  Exit status 1
unless ``turn`` alone is red.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SUITE = """
import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def scale(x, y, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + o, tl.load(x + o) * 2.0 + 1.0)

@triton.jit
def softmax(x, y, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + o)
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + o, v / tl.sum(v, 0))

@triton.jit
def row_sum(x, y, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + tl.program_id(0), tl.sum(tl.load(x + o), 0))

@triton.jit
def turn(x, y, B: tl.constexpr, C: tl.constexpr):
    o = tl.program_id(0) * B * C + tl.arange(0, B)[:, None] * C + tl.arange(0, C)[None, :]
    v = tl.load(x + o)
    tl.store(y + o, tl.softmax(v) + tl.trans(tl.cumsum(tl.trans(v), 1)))

def compiled(function, warps, **constants):
    names = function.arg_names
    source = ASTSource(
        fn=function, signature={name: "constexpr" if name in constants else "*fp32" for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={(n,): [["tt.divisibility", 16]] for n in range(2)},
    )
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})

@pytest.mark.parametrize("block, warps", [(256, 1), (512, 1), (512, 4), (1024, 1), (1024, 4), (2048, 4), (4096, 4)])
@pytest.mark.parametrize("function", [scale, softmax, row_sum], ids=lambda one: one.__name__)
def test_equal(cuda_kernel, gpu, gpuperf, function, block, warps):
    kernel = cuda_kernel.from_triton(compiled(function, warps, B=block))
    x = gpu.random(1 << 24, seed=1)
    gpuperf(kernel.launch((1 << 24) // block, (x, gpu.empty_like(x), block)))

def test_spills(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel.from_triton(compiled(turn, 1, B=64, C=128))
    x = gpu.random(1 << 23, seed=1)
    gpuperf(kernel.launch(1024, (x, gpu.empty_like(x), 64, 128)))
"""
RED = {"SLOWER", "WORSE", "NOT-COMPARABLE"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", help="folder or Python of the other environment")
    other = Path(parser.parse_args().other).absolute()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_bump.py").write_text(SUITE, encoding="utf-8")
        who = ["-c", "user.email=bump@localhost", "-c", "user.name=bump"]
        for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "kernels"]):
            subprocess.run(["git", *command], cwd=folder, check=True)
        command = [sys.executable, "-m", "pytest", "--gpuperf", "-q", f"--gpuperf-against-env={other}",
                   "--gpuperf-report=report.json"]  # fmt: skip
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        print(done.stdout[-6000:])
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    print("| test | verdicts |\n|---|---|")
    red = set()
    for test in report["tests"]:
        verdicts = {one["verdict"] for work in test.get("workloads", ()) for one in work.get("judgements", ())}
        print(f"| {test['test']} | {', '.join(sorted(verdicts))} |")
        if verdicts & RED:
            red.add(test["test"])
    return int(red != {"test_spills"})


if __name__ == "__main__":
    sys.exit(main())
