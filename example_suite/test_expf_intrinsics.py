"""Functions in hardware against functions in software: precision is paid for in instructions.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/expf_intrinsics.cu"
BLOCK = 256
INTRINSICS = {
    "FastExpf": (np.exp, 10, lambda x: (2 + abs(1.173 * x) // 1) * np.spacing(np.exp(x).astype(np.float32))),
    "FastSinf": (np.sin, np.pi, lambda _: 2**-21.41),
    "FastCosf": (np.cos, np.pi, lambda _: 2**-21.19),
}
"""Function, largest argument, and the error that CUDA's documentation allows."""


def launch_over(kernel, given, out):
    return kernel.launch(grid=-(-given.size // BLOCK), block=BLOCK, args=(given, out, given.size))


def test_errors_of_intrinsics(cuda_kernel, gpu, record_property):
    kernels = {name: cuda_kernel(SOURCE, "apply", name_expression=f"apply<{name}>") for name in INTRINSICS}
    for name, (function, largest, bound) in INTRINSICS.items():
        given = gpu.random(100_003, seed=150, low=-largest, high=largest)
        out = gpu.empty_like(given)
        launch_over(kernels[name], given, out)()
        x, found = gpu.to_host(given).astype(np.float64), gpu.to_host(out)
        record_property(name, float((abs(found - function(x)) / bound(x)).max()))
        assert (abs(found - function(x)) <= bound(x)).all()


def links(start):
    """The chain in float64: each link halves the distance to the end, so that 64 of them are as good as all 512."""
    start = start.astype("float64")
    x = start
    for _ in range(64):
        x = start - 0.5 * np.exp(x)
    return x


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_chain_of_exponentials(cuda_kernel, gpu, gpuperf):
    kernels = {of: cuda_kernel(SOURCE, "chain", name_expression=f"chain<{of}>") for of in ("Expf", "FastExpf")}

    def measure(n, size):
        given = gpu.random(n, seed=155, low=-1, high=0)

        def measure_one(name, kernel):
            out = gpu.empty_like(given)
            return gpuperf(
                launch_over(kernel, given, out),
                name=f"{name}, {size}",
                bytes=2 * given.nbytes,
                check=lambda: gpu.assert_allclose(out, links(given), rtol=2e-6),
            )

        return measure_one("expf", kernels["Expf"]), measure_one("__expf", kernels["FastExpf"])

    waiting, waiting_less = measure(BLOCK * gpu.sm_count, "one block per SM")
    issuing, issuing_less = measure(2**22, "full")
    # A full GPU does much of the longer chain in the shadow of MUFU; a lone block waits for all of it.
    assert waiting.time_ns / waiting_less.time_ns > issuing.time_ns / issuing_less.time_ns > 1
