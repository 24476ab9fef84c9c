"""Kernels of known work: the count is in the machine code, and what lies around a kernel does not change it."""

from __future__ import annotations

import dataclasses

import pytest
from pytest_gpuperf.selftest.kernels import FAMILIES, LOOP, Probe, capacity_of, compile_probes, launch_of
from pytest_gpuperf.selftest.known_slowdowns import require_iterations
from pytest_gpuperf.selftest.sass_loop import UnexpectedCode, loop_codes
from simulated_machine import SimulatedMachine

UNBOUNDED = """
extern "C" __global__ void NAME(float* out, float scale, int n) {
    float a = (float)threadIdx.x;
    int i = 0;
    #pragma unroll 1
    do a = fmaf(a, scale, 0.5f); while (++i < n);
    out[COUNT] = a;
}
"""
COUNTS = {"loop": 1000, "copy": 1 << 16, "scatter": 1 << 16, "softmax": 1 << 8}


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_executed_instructions_are_counted_from_the_machine_code(arch: str) -> None:
    short, long = loop_codes(list(compile_probes([Probe(LOOP, 40), Probe(LOOP, 4040)], arch).values()))
    assert (short.iterations, long.iterations) == (40, 4040)
    assert (short.outside, short.body) == (long.outside, long.body)
    assert long.executed - short.executed == 4000 * short.body
    assert 3 <= short.body <= 6


@pytest.mark.parametrize("name", FAMILIES)
def test_a_kernel_is_the_same_to_the_bit_whatever_lies_around_it(name: str) -> None:
    probes = [Probe(FAMILIES[name], COUNTS[name], surroundings) for surroundings in range(5)]
    binaries = compile_probes([*probes, Probe(FAMILIES[name], COUNTS[name] + 1)], "sm_90")
    assert len({binaries[probe].profile.code_hash for probe in probes}) == 1
    assert len({binaries[probe].cubin for probe in probes}) == len(probes)
    assert len({binary.profile.code_hash for binary in binaries.values()}) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LOOP.text.replace("unroll 1", "unroll 4"), "4 FMAs per iteration where one was written"),
        (UNBOUNDED, "not compared with a constant"),
        ('extern "C" __global__ void NAME(float* out) { out[COUNT] = 1; }', "0 jumps where one loop was written"),
    ],
)
def test_code_whose_work_is_not_known_is_refused(text: str, words: str) -> None:
    probe = Probe(dataclasses.replace(LOOP, text=text), 1000)
    with pytest.raises(UnexpectedCode, match=words):
        loop_codes([compile_probes([probe], "sm_90")[probe]])


def test_a_loop_of_another_length_than_written_is_refused() -> None:
    probe = Probe(LOOP, 1000)
    binary = compile_probes([probe], "sm_90")[probe]
    require_iterations({probe: binary})
    with pytest.raises(UnexpectedCode, match="gpuperf_loop_1001: 1000 iterations in its machine code, not 1001"):
        require_iterations({probe: binary, Probe(LOOP, 1001): binary})


@pytest.mark.parametrize("name", FAMILIES)
def test_one_launch_serves_every_count_within_its_capacity(machine: SimulatedMachine, name: str) -> None:
    probe = Probe(FAMILIES[name], COUNTS[name])
    binary = compile_probes([probe], "sm_90")[probe]
    capacity = capacity_of(probe.count)
    assert 1.05 * probe.count < capacity
    launch = launch_of(machine, binary, probe.family, capacity)
    units = {"loop": 132, "softmax": capacity}.get(name, -(-capacity // 256))
    assert launch.grid == (units, 1, 1)
    launch()
    assert machine.elapsed_ns > 0


def test_there_is_no_ptx_of_these_kernels(machine: SimulatedMachine) -> None:
    probe = Probe(LOOP, 100)
    launch = launch_of(machine, compile_probes([probe], "sm_90")[probe], LOOP, 200)
    with pytest.raises(NotImplementedError, match="machine code only"):
        launch.kernel.ptx()
