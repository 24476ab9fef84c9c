"""Independent instructions of different pipes take the time of the slowest, not of all.

From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application".
"""

import functools

import counters
import pytest
import sass_counts

SOURCE = "kernels/pipes_in_parallel.cu"
BLOCK = 1024
BLOCKS_PER_SM = 2
"""All threads of the GPU at once, so that kernels which take turns do so together."""
FACTOR, ADDEND, BY = 0.9999, 0.25, 5
DFMA, SHF, EX2 = 6, 6, 2
"""Of a round."""
KINDS = {
    "only_wide": {"wide"},
    "only_turned": {"turned"},
    "only_power": {"power"},
    "in_turn": {"wide", "turned", "power"},
    "together": {"wide", "turned", "power"},
}
"""What each kernel works on."""
SETTLED = 64
"""Steps of x = 2 to the power of -x that leave it where it is, in float64 as well."""


class Work:
    """Arrays, a kernel's launch on them, and what it should leave there."""

    def __init__(self, kernel, gpu, blocks, rounds):
        n = blocks * BLOCK
        self._gpu = gpu
        self._rounds = rounds
        self._given = {
            "wide": gpu.random(n, "float64", seed=420),
            "turned": gpu.random(n, "uint32", seed=421, low=0, high=2**32),
            "power": gpu.random(n, "float32", seed=422),
        }
        self.arrays = {name: gpu.empty(n, array.dtype) for name, array in self._given.items()}
        args = (*self.arrays.values(), rounds, FACTOR, ADDEND, BY)
        self.launch = kernel.launch(grid=(blocks,), block=(BLOCK,), args=args)

    def reset(self):
        for name, array in self.arrays.items():
            array[...] = self._given[name]

    def expected(self, kind):
        given = self._given[kind]
        if kind == "wide":
            kept = FACTOR ** (DFMA * self._rounds)
            return given * kept + ADDEND * (1 - kept) / (1 - FACTOR)
        if kind == "turned":
            by = BY * SHF * self._rounds % 32
            return given << by | given >> (32 - by)
        value = given.astype("float64")
        for _ in range(min(EX2 * self._rounds, SETTLED)):
            value = 2.0**-value
        return value

    def check(self, kinds):
        """What the kernel works on has its value, and the rest is as it was."""
        tolerance = {"wide": 1e-9, "power": 2e-6}
        for name, array in self.arrays.items():
            if name not in kinds:
                self._gpu.assert_equal(array, self._given[name])
            elif name == "turned":
                self._gpu.assert_equal(array, self.expected(name))
            else:
                self._gpu.assert_allclose(array, self.expected(name), rtol=tolerance[name])

    def check_twice(self):
        """A chain less another one that began with the first's complement."""
        first = self.expected("turned")
        self._gpu.assert_equal(self.arrays["turned"], first - ~first)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("rounds", [1, 7])
def test_values_are_right(cuda_kernel, gpu, name, rounds):
    work = Work(cuda_kernel(SOURCE, name), gpu, blocks=3, rounds=rounds)
    work.reset()
    work.launch()
    work.check(KINDS[name])


def test_values_of_two_chains_are_right(cuda_kernel, gpu):
    work = Work(cuda_kernel(SOURCE, "only_turned_twice"), gpu, blocks=3, rounds=7)
    work.reset()
    work.launch()
    work.check_twice()


def instructions_of(binary):
    return {pipe: sass_counts.count(binary, pipe) for pipe in ("DFMA", "SHF", "MUFU")}


@pytest.mark.gpuperf(budget_s=0.2, cache="warm")
def test_one_pipe_or_three(cuda_kernel, gpu, gpuperf, claim):
    kernels = {name: cuda_kernel(SOURCE, name) for name in (*KINDS, "only_turned_twice")}
    for arch in kernels["together"].profiles:
        counts = instructions_of(kernels["together"].binaries[arch])
        assert counts == instructions_of(kernels["in_turn"].binaries[arch])
        assert counts["DFMA"] / DFMA == counts["SHF"] / SHF == counts["MUFU"] / EX2

    def measure(name):
        work = Work(kernels[name], gpu, blocks=BLOCKS_PER_SM * gpu.sm_count, rounds=1000)
        check = work.check_twice if name == "only_turned_twice" else functools.partial(work.check, KINDS[name])
        return gpuperf(work.launch, name=name, reset=work.reset, check=check)

    runs = {name: measure(name) for name in kernels}
    times = {name: run.time_ns for name, run in runs.items()}
    alone = [times[name] for name in ("only_wide", "only_turned", "only_power")]
    claim("PIP-01", times["in_turn"] / times["together"])
    claim("PIP-02", times["together"] / max(alone))
    claim("PIP-03", times["in_turn"] / sum(alone))
    claim("PIP-04", times["only_turned_twice"] / times["only_turned"])
    claim("PIP-05", lambda: counters.issue_rate(runs["together"]) / counters.issue_rate(runs["in_turn"]))
