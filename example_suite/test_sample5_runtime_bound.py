"""A loop whose length the compiler knows, or not.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 5).
"""

import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/sample5_runtime_bound.cu"
BLOCK = 256
BOUND = 3
STACK_BYTES = {"sm_80": 16, "sm_89": 16, "sm_90": 16, "sm_120": 0}
"""Of the loop whose length is not known."""


def compile_all(cuda_kernel):
    return [cuda_kernel(SOURCE, name) for name in ("sum_runtime", "sum_constant", "sum_guarded")]


def launch_over(kernel, out, given, *bound):
    return kernel.launch(grid=(blocks_over(out.size, BLOCK),), block=(BLOCK,), args=(out, given, given.size, *bound))


def test_three_neighbours_add_up(cuda_kernel, gpu):
    n = 100_003
    values = np.random.default_rng(330).uniform(0.5, 1.5, n).astype(np.float32)
    exact = values.astype(np.float64)
    runtime, constant, guarded = compile_all(cuda_kernel)

    def worst_error(kernel, terms, *bound):
        out = gpu.zeros(n - 2)
        launch_over(kernel, out, gpu.array(values), *bound)()
        expected = sum(exact[k : n - 2 + k] for k in range(terms))
        return float(np.max(np.abs(gpu.to_host(out) / expected - 1)))

    for terms in (2, BOUND):
        assert worst_error(runtime, terms, terms) <= 1e-6
        assert worst_error(guarded, terms, terms) <= 1e-6
    assert worst_error(constant, BOUND) <= 1e-6


def test_what_the_compiler_makes_of_the_array(cuda_kernel, claim):
    runtime, constant, guarded = (kernel.profiles for kernel in compile_all(cuda_kernel))
    for arch, profile in constant.items():
        assert profile.stack_bytes == guarded[arch].stack_bytes == 0
        assert profile.opcodes["global_load"] == BOUND
        assert "local_load" not in profile.opcodes
        assert runtime[arch].stack_bytes == STACK_BYTES.get(arch, runtime[arch].stack_bytes)
    if "sm_90" in runtime:
        claim("S5-01", runtime["sm_90"].stack_bytes)
        claim("S5-02", constant["sm_90"].registers / runtime["sm_90"].registers)


@pytest.mark.gpuperf(budget_s=0.6)
def test_sums_of_an_array(cuda_kernel, gpu, gpuperf, claim):
    runtime, constant, guarded = compile_all(cuda_kernel)
    n = 2**26
    given = gpu.random(n, seed=331, low=0.5, high=1.5)
    out = gpu.empty(n - 2)

    def check():
        gpu.assert_allclose(out, given[:-2].astype("float64") + given[1:-1] + given[2:], rtol=1e-6)
        out.fill(0)  # what the next kernel does not write is seen

    def measure(kernel, *bound):
        launch = launch_over(kernel, out, given, *bound)
        return gpuperf(launch, bytes=2 * given.nbytes, flops=2 * n, check=check)

    on_stack = measure(runtime, BOUND)
    in_registers = measure(constant)
    bound_unknown = measure(guarded, BOUND)

    claim("S5-03", on_stack.time_ns / in_registers.time_ns)
    # The control: a bound that the compiler does not know costs nothing where every index is a literal.
    assert bound_unknown.time_ns == pytest.approx(in_registers.time_ns, rel=0.1)
