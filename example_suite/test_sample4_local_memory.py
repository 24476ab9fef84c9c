"""An array that is indexed at run time lives in local memory.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 4).
"""

import functools

import counters
import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/sample4_local_memory.cu"
BLOCK = 256
COLUMNS = 4


def compile_variant(cuda_kernel, variant):
    if variant == "add_indexed":
        return cuda_kernel(SOURCE, variant, name_expression=f"add_indexed<{COLUMNS}>")
    return cuda_kernel(SOURCE, variant)


def grid_over(rows):
    return (blocks_over(rows, BLOCK),)


def test_columns_gain_what_their_row_names(cuda_kernel, gpu):
    rows = 1003
    rng = np.random.default_rng(320)
    before, terms = rng.uniform(0.5, 1.5, (2, COLUMNS, rows)).astype(np.float32)
    rotated = np.repeat((np.arange(COLUMNS, dtype=np.int32)[:, None] + 1) % COLUMNS, rows, axis=1)
    some_twice_some_never = rng.integers(0, COLUMNS, (COLUMNS, rows), dtype=np.int32)
    kernels = {name: compile_variant(cuda_kernel, name) for name in ("add_indexed", "add_switch", "add_chain")}
    for name, kernel in kernels.items():
        for named in (rotated, some_twice_some_never):
            a = gpu.array(before)
            kernel.launch(grid=grid_over(rows), block=(BLOCK,), args=(a, gpu.array(terms), gpu.array(named), rows))()
            times_named = np.stack([(named == column).sum(axis=0) for column in range(COLUMNS)])
            expected = before.astype(np.float64) + 10 * times_named * terms.astype(np.float64).sum(axis=0)
            np.testing.assert_allclose(gpu.to_host(a), expected, rtol=1e-5, err_msg=name)


def test_what_has_a_stack(cuda_kernel, claim):
    def stack_bytes(name, name_expression=None):
        profiles = cuda_kernel(SOURCE, name, name_expression=name_expression).profiles
        return {arch: profile.stack_bytes for arch, profile in profiles.items()}

    frames = {columns: set(stack_bytes("add_indexed", f"add_indexed<{columns}>").values()) for columns in (3, 4, 8, 16)}
    assert frames == {3: {0}, 4: {16}, 8: {32}, 16: {64}}
    claim("S4-01", max(frames[3]), because=[min(frames[4])])
    claim("S4-10", max(stack_bytes("add_switch").values()))
    claim("S4-09", min(stack_bytes("pick_of_three").values()))
    chain = stack_bytes("add_chain")
    if "sm_90" in chain:
        claim("S4-08", chain["sm_90"])


def test_the_smallest_stack_frame_holds_what_it_should(cuda_kernel, gpu):
    kernel = cuda_kernel(SOURCE, "pick_of_three")
    given = gpu.random((64, 3), dtype="float64", seed=321)
    out = gpu.zeros(64, dtype="float64")
    kernel.launch(grid=(2,), block=(32,), args=(out, given, 1))()
    expected = gpu.to_host(given) @ np.array([1.0, 2.0, 1.0])
    np.testing.assert_allclose(gpu.to_host(out), expected, rtol=1e-14)


def test_adding_rows(cuda_kernel, gpu, gpuperf, claim):
    kernels = {variant: compile_variant(cuda_kernel, variant) for variant in ("add_indexed", "add_switch")}
    for profile in kernels["add_indexed"].profiles.values():
        assert profile.opcodes["local_store"] > 0
    for profile in kernels["add_switch"].profiles.values():
        assert "local_store" not in profile.opcodes

    rows = 2**26
    start = gpu.random((COLUMNS, rows), seed=322, low=0.5, high=1.5)
    b = gpu.random((COLUMNS, rows), seed=323, low=0.5, high=1.5)
    named = gpu.empty((COLUMNS, rows), dtype="int32")
    a = gpu.empty_like(start)

    @functools.cache
    def name_columns():
        for d in range(COLUMNS):
            named[d] = (d + 1) % COLUMNS

    def restore():
        name_columns()
        a[...] = start

    def check():
        gain = 10 * b.sum(axis=0)
        for d in range(COLUMNS):  # one by one, for the memory that a comparison takes
            gpu.assert_allclose(a[d], start[d] + gain, rtol=1e-5)

    def measure(variant):
        launch = kernels[variant].launch(grid=grid_over(rows), block=(BLOCK,), args=(a, b, named, rows))
        return gpuperf(launch, name=variant, bytes=4 * a.nbytes, flops=160 * rows, check=check, reset=restore)

    indexed, switch = (measure(variant) for variant in kernels)

    assert_what_counters_say(indexed, switch, claim)
    claim("S4-02", indexed.time_ns / switch.time_ns, because=[lambda: counters.l2_throughput(indexed)])
    assert switch.bandwidth >= 0.8 * gpu.copy_bandwidth


def assert_what_counters_say(indexed, switch, claim):
    def accesses_left():
        assert counters.local_accesses(indexed) > 0
        return counters.local_accesses(switch)

    def global_requests(run):
        return counters.requests(run, "ld") + counters.requests(run, "st")

    claim("S4-03", accesses_left)
    claim("S4-04", lambda: global_requests(switch) / global_requests(indexed))
    claim("S4-05", lambda: 100 * (counters.l1_hit_rate(switch) / counters.l1_hit_rate(indexed) - 1))
    claim("S4-06", lambda: counters.stall(switch, "long_scoreboard") / counters.stall(indexed, "long_scoreboard"))
    claim("S4-07", lambda: counters.sm_throughput(switch) / counters.sm_throughput(indexed))
    claim(
        "S4-11",
        lambda: counters.memory_throughput(switch) / counters.memory_throughput(indexed),
        because=[lambda: counters.memory_throughput(indexed)],
    )


@pytest.mark.gpuperf(budget_s=0.3)
def test_an_index_alone_costs_no_stack(cuda_kernel, gpu, gpuperf):
    """The control: the same source, indexed at run time, with the three columns that this compiler has registers for.

    Its stack is gone, and with it the cost.
    """
    columns, rows = 3, 2**25
    kernel = cuda_kernel(SOURCE, "add_indexed", name_expression=f"add_indexed<{columns}>")
    start = gpu.random((columns, rows), seed=324, low=0.5, high=1.5)
    b = gpu.random((columns, rows), seed=325, low=0.5, high=1.5)
    named = gpu.empty((columns, rows), dtype="int32")
    a = gpu.empty_like(start)

    def restore():
        for d in range(columns):
            named[d] = (d + 1) % columns
        a[...] = start

    def check():
        gain = 10 * b.sum(axis=0)
        for d in range(columns):
            gpu.assert_allclose(a[d], start[d] + gain, rtol=1e-5)

    launch = kernel.launch(grid=grid_over(rows), block=(BLOCK,), args=(a, b, named, rows))
    run = gpuperf(launch, name="three columns", bytes=4 * a.nbytes, flops=90 * rows, check=check, reset=restore)
    assert run.bandwidth >= 0.6 * gpu.copy_bandwidth  # with a stack it is 0.3
