"""Every claim of the example families is named in a test, once; and the ``claim`` fixture means what it says."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from loaded_scripts import load_script

SUITE = Path(__file__).parents[3] / "example_suite"
MODULES = {
    "transpose32": "test_transpose32.py",
    "sample1_redundant_access": "test_sample1_redundant_access.py",
    "sample4_local_memory": "test_sample4_local_memory.py",
    "sample7_template_branch": "test_sample7_template_branch.py",
    "HW": "test_occupancy_block_size.py",
    "occupancy_block_size": "test_occupancy_block_size.py",
    "reduce_sum": "test_reduce_sum.py",
    "matmul": "test_matmul.py",
    "polynomial": "test_polynomial.py",
    "segment_intersection": "test_segment_intersection.py",
    "kernel_a_latency": "test_kernel_a_latency.py",
    "divergent_branch": "test_divergent_branch.py",
    "md_tile_spatial_sort": "test_md_tile_spatial_sort.py",
    "dynamic_block_dims": "test_dynamic_block_dims.py",
    "scout_and_dive": "test_scout_and_dive.py",
    "polygon_edge_dataflow": "test_polygon_edge_dataflow.py",
    "select_dataflow": "test_select_dataflow.py",
    "barriers": "test_barriers.py",
    "register_pipelining": "test_register_pipelining.py",
    "occupancy_registers": "test_occupancy_registers.py",
    "simt_divergence_mask": "test_simt_divergence_mask.py",
    "kernel_fission": "test_kernel_fission.py",
    "hmma_1688": "test_hmma_1688.py",
    "matmul_wgmma": "test_matmul_wgmma.py",
    "math_cost_ladder": "test_math_cost_ladder.py",
    "vector_loads_float4": "test_vector_loads_float4.py",
    "angle_compare": "test_angle_compare.py",
    "moro_inversion": "test_moro_inversion.py",
    "expf_intrinsics": "test_expf_intrinsics.py",
    "loop_counter_signedness": "test_loop_counter_signedness.py",
    "occupancy_smem_cards": "test_occupancy_smem_cards.py",
    "sample2_static_array": "test_sample2_static_array.py",
    "sample3_layout": "test_sample3_layout.py",
    "sample5_runtime_bound": "test_sample5_runtime_bound.py",
    "sample6_mdrange": "test_sample6_mdrange.py",
    "sample8_divergent_reduce": "test_sample8_divergent_reduce.py",
    "access_patterns": "test_access_patterns.py",
    "bank_conflicts": "test_bank_conflicts.py",
    "latency_hiding_chart": "test_latency_hiding_chart.py",
    "cfd_real_kernels": "test_muscl_reconstruction.py",
    "streams_overlap": "test_streams_overlap.py",
    "hardware_facts": "test_hardware_facts.py",
    "thresholds": "test_thresholds.py",
    "l2_fetch_granularity": "test_l2_fetch_granularity.py",
    "dpx": "test_dpx.py",
    "pipes_in_parallel": "test_pipes_in_parallel.py",
    "recompute_or_fetch": "test_recompute_or_fetch.py",
    "write_then_reload": "test_write_then_reload.py",
    "cub_reduction": "test_cub_reduction.py",
    "f32x2": "test_f32x2.py",
    "unroll_factor": "test_unroll_factor.py",
    "launch_bounds_spills": "test_launch_bounds_spills.py",
    "spilling_that_pays": "test_spilling_that_pays.py",
}
ELSEWHERE = {
    "SM-01": "test_segment_intersection.py",
    "RP-05": "test_segment_intersection.py",
    "THR-01": "test_kernel_a_latency.py",
    "THR-02": "test_vector_loads_float4.py",
    "THR-03": "test_occupancy_smem_cards.py",
    "THR-04": "test_sample1_redundant_access.py",
    "THR-05": "test_vector_loads_float4.py",
    "THR-06": "test_reduce_sum.py",
    "THR-07": "test_kernel_a_latency.py",
    "THR-08": "test_kernel_a_latency.py",
    "THR-09": "test_kernel_a_latency.py",
    "THR-10": "test_reduce_sum.py",
}
"""Claims that are not looked at by their own family, but where another one has the kernels that show them."""


claims = load_script(SUITE / "claims.py", "example_suite_claims")
"""Under a name of its own, without putting the suite on ``sys.path``."""


def mentions(text: str, known: set[str]) -> Counter[str]:
    """How often each quoted claim id occurs in a test module."""
    return Counter(name for name in re.findall(r'"([A-Z][A-Z0-9]*-\d{2})"', text) if name in known)


@pytest.mark.parametrize("module", sorted({*MODULES.values(), *ELSEWHERE.values()}))
def test_every_claim_is_named_exactly_once_where_it_belongs(module: str) -> None:
    known = claims.load_claims()
    ids = {claim.id for claim in known.values() if ELSEWHERE.get(claim.id, MODULES[claim.family]) == module}
    assert mentions((SUITE / module).read_text(encoding="utf-8"), set(known)) == Counter(ids)


def test_no_family_is_without_a_module() -> None:
    assert {claim.family for claim in claims.load_claims().values()} == set(MODULES)


def test_no_test_names_a_claim_that_does_not_exist() -> None:
    named = {
        name for module in SUITE.glob("test_*.py") for name in re.findall(r'"([A-Z]+\d?-\d{2})"', module.read_text())
    }
    assert named <= set(claims.load_claims())


def test_a_missing_or_doubled_mention_is_seen() -> None:
    assert mentions('claim("S1-01", x)', {"S1-01", "S1-02"}) != Counter({"S1-01", "S1-02"})
    assert mentions('claim("S1-01", x)\nclaim("S1-01", y)', {"S1-01"}) != Counter({"S1-01"})


class Recorder:
    def __init__(self) -> None:
        self.outcomes: list[dict[str, Any]] = []

    def __call__(self, name: str, value: object) -> None:
        assert name == claims.PROPERTY
        assert isinstance(value, str)
        self.outcomes.append(json.loads(value))


@pytest.fixture
def record() -> Recorder:
    return Recorder()


@pytest.fixture
def claim(record: Recorder) -> Any:
    return claims.ClaimChecker(record, measured_on=lambda: "nvidia-h200")


def test_a_claim_that_holds_is_filed_with_its_figure(claim: Any, record: Recorder) -> None:
    claim("S1-01", 2.75, at_least=2.5)
    expected = {"id": "S1-01", "verdict": "holds", "measured": 2.75, "expected": "at least 2.5", "gpu": "nvidia-h200"}
    assert record.outcomes == [expected]


def test_a_claim_that_is_not_about_time_asks_for_no_gpu(record: Recorder) -> None:
    def no_gpu() -> str:
        raise AssertionError("asked for a GPU")

    claims.ClaimChecker(record, measured_on=no_gpu)("S4-01", 0, equals=0)
    assert record.outcomes == [{"id": "S4-01", "verdict": "holds", "measured": 0, "expected": "exactly 0"}]


@pytest.mark.parametrize(
    ("value", "bound", "words"),
    [
        (2.4, {"at_least": 2.5}, "at least 2.5"),
        (2.6, {"at_most": 2.5}, "at most 2.5"),
        (0.3, {"between": (0.35, 0.6)}, "0.35 to 0.6"),
        (3, {"equals": 4}, "exactly 4"),
        (3.8, {"equals": 4, "tol": 0.1}, "3.9 to 4.1"),
        (float("nan"), {"at_most": 2.5}, "at most 2.5"),
    ],
)
def test_a_claim_that_fails_quotes_the_document(
    claim: Any, record: Recorder, value: float, bound: dict[str, Any], words: str
) -> None:
    with pytest.raises(AssertionError) as failure:
        claim("S1-01", value, **bound)
    message = str(failure.value)
    assert message.startswith(f"S1-01 does not hold: measured {value:g}, expected {words}.")
    assert "RTX 6000 Ada" in message
    assert "2.81x" in message
    assert [outcome["verdict"] for outcome in record.outcomes] == ["fails"]


@pytest.mark.parametrize("bounds", [{}, {"at_least": 1, "at_most": 2}])
def test_a_claim_takes_one_bound(claim: Any, bounds: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="exactly one of"):
        claim("S1-01", 1.0, **bounds)


def test_an_unknown_claim_is_an_error(claim: Any) -> None:
    with pytest.raises(KeyError):
        claim("S1-99", 1.0, at_least=0)


def test_a_refuted_claim_is_filed_with_its_reason(claim: Any, record: Recorder) -> None:
    claim.refuted("TR-03", 1.4, holds=False, reason="faster memory")
    assert [outcome.pop("gpu") for outcome in record.outcomes] == ["nvidia-h200"]
    assert record.outcomes == [{"id": "TR-03", "verdict": "refuted", "measured": 1.4, "reason": "faster memory"}]


def test_a_refuted_claim_that_holds_fails(claim: Any, record: Recorder) -> None:
    with pytest.raises(AssertionError, match="TR-03 was refuted"):
        claim.refuted("TR-03", 3.1, holds=True, reason="faster memory")
    assert [outcome["verdict"] for outcome in record.outcomes] == ["holds after all"]


def test_a_skipped_claim_is_filed(claim: Any, record: Recorder) -> None:
    claim.skipped("TR-05", "a counter")
    assert record.outcomes == [{"id": "TR-05", "verdict": "not measured", "measured": None, "reason": "a counter"}]


def test_a_promise_is_filed_as_measured_by_claims_that_exist(claim: Any, record: Recorder) -> None:
    claim.seen_elsewhere("CHK-03")
    assert record.outcomes == [{"id": "CHK-03", "verdict": "measured elsewhere", "measured": None}]
    known = claims.load_claims()
    assert {other for one in known.values() for other in one.see} <= known.keys()


def test_expected_times_bind_on_the_gpu_they_were_worked_out_for_only(record: Recorder) -> None:
    elsewhere = claims.ClaimChecker(record, measured_on=lambda: "nvidia-l4")
    elsewhere("S1-01", 1.9, at_least=2.5)
    elsewhere.refuted("TR-03", 3.1, holds=True, reason="faster memory")
    assert [outcome["verdict"] for outcome in record.outcomes] == ["differs on nvidia-l4", "differs on nvidia-l4"]
    with pytest.raises(AssertionError, match="S4-01 does not hold"):
        elsewhere("S4-01", 16, equals=0)
