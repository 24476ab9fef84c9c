"""The type of a loop counter: what the compiler may assume about it.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import counters
import numpy as np
import ptx_counts
import pytest

SOURCE = "kernels/loop_counter_signedness.cu"
NAMES = ("count_unsigned", "count_signed")
BLOCK = 256
VALUES = 4
"""Of a thread, updated in turn."""
SCALE, OFFSET = (float(np.float32(value)) for value in (0.999, 0.01))
ARCHS = ("sm_80", "sm_90")
"""Whose compiler takes the counter's type seriously; Blackwell's finds the number of rounds by itself."""


def launch_over(kernel, given, out, rounds):
    return kernel.launch(grid=(len(given) // BLOCK,), block=(BLOCK,), args=(given, out, SCALE, OFFSET, rounds))


def at_the_end(x, rounds):
    """In float64: the sums of four geometric series; for NumPy and CuPy arrays of float32."""
    out = x.astype("float64")
    for turn in range(VALUES):
        updates = len(range(2 * turn, rounds, 2 * VALUES))
        power = SCALE**updates
        out[:, turn] = power * out[:, turn] + OFFSET * (1 - power) / (1 - SCALE)
    return out


def branches(counts):
    return sum(count for name, count in counts.items() if name.startswith("bra"))


def test_both_count_alike(cuda_kernel, gpu, claim):
    kernels = [cuda_kernel(SOURCE, name) for name in NAMES]
    given = gpu.random((2 * BLOCK, VALUES), seed=160, low=-1, high=1)
    by_one = cuda_kernel(SOURCE, "count_by_one", name_expression="count_by_one<unsigned>")
    equal = []
    for rounds in (0, 1, 7, 256, 1001, 4096):
        outs = [gpu.empty_like(given) for _ in (*NAMES, by_one)]
        for kernel, out in zip((*kernels, by_one), outs, strict=True):
            launch_over(kernel, given, out, rounds)()
        found = [gpu.to_host(out) for out in outs]
        np.testing.assert_allclose(found[0], at_the_end(gpu.to_host(given), rounds), rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(found[2], at_the_end(gpu.to_host(given), rounds), rtol=1e-5, atol=1e-4)
        equal.append((found[0] == found[1]).mean())
    claim("LCS-04", np.mean(equal))


@pytest.mark.gpuperf(budget_s=0.5, cache="warm")
def test_loop_of_many_rounds(cuda_kernel, gpu, gpuperf, claim):
    kernels = {name: cuda_kernel(SOURCE, name) for name in NAMES}
    counts = [
        {arch: ptx_counts.instructions(kernel, arch) for arch in (*ARCHS, "sm_120")} for kernel in kernels.values()
    ]
    unsigned, signed = counts
    assert min(branches(unsigned[arch]) / branches(signed[arch]) for arch in ARCHS) > 20
    assert branches(unsigned["sm_120"]) == branches(signed["sm_120"])
    # The control: a counter that goes up by 1 cannot step over the end, and its type is all the same.
    by_one = cuda_kernel(SOURCE, "count_by_one", name_expression="count_by_one<unsigned>")
    assert {branches(ptx_counts.instructions(by_one, arch)) for arch in ARCHS} == {branches(signed["sm_90"])}
    claim("LCS-01", min(sum(unsigned[arch].values()) / sum(signed[arch].values()) for arch in ARCHS))
    # The array of four is indexed by a constant wherever the loop is unrolled, and by a select elsewhere.
    assert {profile.stack_bytes for kernel in kernels.values() for profile in kernel.profiles.values()} == {0}

    rounds = 2**16
    threads = 2048 * gpu.sm_count
    given = gpu.random((threads, VALUES), seed=161, low=-1, high=1)

    def measure(name):
        out = gpu.empty_like(given)
        launch = launch_over(kernels.get(name, by_one), given, out, rounds)
        check = functools.partial(assert_values, gpu, out, given, rounds)
        return gpuperf(launch, name=name, bytes=2 * given.nbytes, flops=threads * rounds, check=check)

    by_unsigned, by_signed = (measure(name) for name in NAMES)
    unsigned_by_one = measure("count_by_one<unsigned>")
    claim("LCS-02", lambda: counters.instructions(by_unsigned) / counters.instructions(by_signed))
    claim("LCS-03", by_unsigned.time_ns / by_signed.time_ns)
    if gpu.slug == "nvidia-h200":
        assert unsigned_by_one.time_ns == pytest.approx(by_signed.time_ns, rel=0.05)


def assert_values(gpu, out, given, rounds):
    gpu.assert_allclose(out, at_the_end(given, rounds), rtol=1e-4)
