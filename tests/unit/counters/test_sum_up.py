"""From kernels to workloads."""

from __future__ import annotations

from pytest_gpuperf.counters.catalogue import ACHIEVED_OCCUPANCY, DRAM_READ, INSTRUCTIONS, SHARED_WAVEFRONTS
from pytest_gpuperf.counters.exchange import KernelResult
from pytest_gpuperf.counters.report import sum_up

WANTED = (INSTRUCTIONS.name, DRAM_READ.name, ACHIEVED_OCCUPANCY.name, SHARED_WAVEFRONTS.name, "own__metric.sum")


def kernel(**metrics: float) -> KernelResult:
    return KernelResult(kernel="k", range=0, metrics=metrics)


def of(instructions: float, occupancy: float = 50.0) -> KernelResult:
    return kernel(**{INSTRUCTIONS.name: instructions, ACHIEVED_OCCUPANCY.name: occupancy, SHARED_WAVEFRONTS.name: 8.0})


def test_counts_of_several_kernels_add_up_and_ratios_are_left_out_with_a_note():
    counters, note = sum_up([of(10), of(32)], "GH100", WANTED)
    assert counters == {INSTRUCTIONS.name: 42, SHARED_WAVEFRONTS.name: 16}
    assert note == "2 kernels: 1 ratios and percentages are left out, which do not add up"


def test_a_metric_that_one_kernel_lacks_is_no_sum():
    counters, _ = sum_up([of(10), kernel(**{ACHIEVED_OCCUPANCY.name: 50.0})], "GH100", WANTED)
    assert INSTRUCTIONS.name not in counters


def test_a_chips_own_names_become_canonical():
    counters, _ = sum_up([kernel(dram__bytes_op_read=1.0, **{"dram__bytes_op_read.sum": 64.0})], "GB202", WANTED)
    assert counters == {DRAM_READ.name: 64.0}
