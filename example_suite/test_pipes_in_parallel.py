"""Independent instructions of different pipes take the time of the slowest, not of all.

From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application".
"""

import pytest

SOURCE = "kernels/pipes_in_parallel.cu"
FACTOR, ADDEND, BY, ROUNDS = 0.9999, 0.25, 5, 1000


def wide(x):
    kept = FACTOR ** (6 * ROUNDS)
    return x * kept + ADDEND * (1 - kept) / (1 - FACTOR)


def turned(x):
    by = BY * 6 * ROUNDS % 32
    return x << by | x >> (32 - by)


def turned_twice(x):
    return turned(x) - ~turned(x)


def power(x):
    x = x.astype("float64")
    for _ in range(64):  # long since where it stays
        x = 2.0**-x
    return x


KERNELS = {
    "only_wide": (wide, None, None),
    "only_turned": (None, turned, None),
    "only_power": (None, None, power),
    "in_turn": (wide, turned, power),
    "together": (wide, turned, power),
    "only_turned_twice": (None, turned_twice, None),
}
"""What becomes of the three arrays; None where a kernel leaves one as it is."""


@pytest.mark.gpuperf(budget_s=0.2, cache="warm")
def test_one_pipe_or_three(cuda_kernel, gpu, gpuperf):
    blocks = 2 * gpu.sm_count  # all threads of the GPU at once, so that those which take turns do so together
    n = blocks * 1024
    given = gpu.random(n, "float64", seed=420), gpu.random(n, "uint32", seed=421, high=2**32), gpu.random(n, seed=422)

    def measure(name):
        arrays = [gpu.empty(n, start.dtype) for start in given]

        def reset():
            for array, start in zip(arrays, given, strict=True):
                array[...] = start

        def check():
            for array, start, end, rtol in zip(arrays, given, KERNELS[name], (1e-9, 0, 2e-6), strict=True):
                gpu.assert_allclose(array, end(start) if end else start, rtol=rtol)

        launch = cuda_kernel(SOURCE, name).launch(blocks, 1024, (*arrays, ROUNDS, FACTOR, ADDEND, BY))
        return gpuperf(launch, name=name, reset=reset, check=check)

    _, only_turned, _, in_turn, together, twice = (measure(name) for name in KERNELS)
    assert together.time_ns < in_turn.time_ns
    assert twice.time_ns > 1.8 * only_turned.time_ns  # the control: two chains of one kind share its pipe
