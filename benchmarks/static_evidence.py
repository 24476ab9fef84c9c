"""How long static evidence takes: from a cold cache, and from a warm one.  Needs no GPU.

    python benchmarks/static_evidence.py [--arch sm_80,sm_90,sm_120] [KERNEL.cu ...]

Takes the example suite's kernels where they are, else a set of its own.  Targets, on 2 cores: at most 0.25 s
per kernel and architecture cold, at least 50 kernels per second from the cache.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import UnknownKernel
from pytest_gpuperf.compile.compiler import compile_for, compile_kernel
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.compile.source import KernelSource

SUITE = Path(__file__).parent.parent / "example_suite" / "kernels"
COLD_TARGET_S = 0.25
WARM_TARGET_PER_S = 50.0
WARM_REPETITIONS = 5

GENERATED = """
template <int STEPS> __device__ float work(float value) {{
    for (int step = 0; step < STEPS; ++step) value = value * value + {index}.5f;
    return value;
}}
extern "C" __global__ void generated_{index}(float* out, const float* in, int n) {{
    __shared__ float tile[256];
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = at < n ? in[at] : 0.0f;
    __syncthreads();
    if (at < n) out[at] = work<{index} + 8>(tile[255 - threadIdx.x]) + sinf(in[at]);
}}
"""


def sources(files: list[Path]) -> list[tuple[str, list[KernelSource]]]:
    """Each source by file name, once per kernel in it that is no template."""
    texts = [(file.name, file.read_text(), file) for file in files]
    if not texts:
        texts = [(f"generated_{i}.cu", GENERATED.format(index=i), Path(f"generated_{i}.cu")) for i in range(8)]
    found = []
    for name, text, path in texts:
        try:
            compile_kernel(KernelSource(text, "", path), "sm_80")
        except UnknownKernel as problem:
            plain = [kernel for kernel in problem.available if "<" not in kernel]
            found.append((name, [KernelSource(text, kernel, path) for kernel in plain]))
    return [(name, kernels) for name, kernels in found if kernels]


def seconds(kernels: list[KernelSource], archs: list[str], cache: CompileCache) -> float:
    """Wall-clock seconds for the evidence of all ``kernels`` on all ``archs``."""
    start = time.perf_counter()
    for kernel in kernels:
        compile_for(kernel, archs, cache)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print one line per source and a total."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--arch", default="sm_80,sm_90,sm_120")
    arguments = parser.parse_args()
    archs = arguments.arch.split(",")
    chosen = sources(arguments.files or sorted(SUITE.glob("*.cu")))
    print(f"{toolchain()}, {os.cpu_count()} cores, {', '.join(archs)}")
    print(f"{'source':32} {'kernels':>7} {'cold, s':>8} {'s/kernel/arch':>14} {'warm, kernels/s':>16}")
    total_cold = total_warm = 0.0
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        cache = CompileCache(Path(folder))
        for name, kernels in chosen:
            cold = seconds(kernels, archs, cache)
            warm = min(seconds(kernels, archs, cache) for _ in range(WARM_REPETITIONS))
            count = len(kernels) * len(archs)
            print(f"{name:32} {len(kernels):7} {cold:8.2f} {cold / count:14.3f} {count / warm:16.0f}")
            total, total_cold, total_warm = total + count, total_cold + cold, total_warm + warm
    print(f"{'all':32} {total // len(archs):7} {total_cold:8.2f} {total_cold / total:14.3f} {total / total_warm:16.0f}")
    print(
        f"targets: cold at most {COLD_TARGET_S} s per kernel and architecture, warm at least {WARM_TARGET_PER_S:.0f}/s"
    )


if __name__ == "__main__":
    main()
