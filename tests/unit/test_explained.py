"""Workloads explained: a side of a comparison, a launch out of an identity, and the lines of ``gpuperf explain``."""

from __future__ import annotations

from pathlib import Path

from record_samples import static_of, time_of

from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.explain_command import _figures, explain_all
from pytest_gpuperf.explain import known_launch, side_of
from pytest_gpuperf.model.evidence import Key, Parameter
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.time_record import Identity
from pytest_gpuperf.model.verdict import Advice, Judgement, Verdict
from pytest_gpuperf.report.message import WIDTH

KEY = Key(module="suite/test_a.py", test="test_a", workload="copy")
ARGUMENTS = ("float32[1024,32] align=16", "int32=-7", "null", "bool=True", "float32=1.5", "address align=4",
             "Pair=0x0102030405060708", "uint64=9", "float32[4]")  # fmt: skip


def test_grid_is_that_of_the_timed_launch_or_the_static_record() -> None:
    static = static_of(grid=(7, 1, 1))
    for record, time, grid in (
        (static, None, (7, 1, 1)), (static, time_of(grid=(9, 1, 1)), (9, 1, 1)), (None, None, None)
    ):  # fmt: skip
        assert side_of("sm_90", record, time, None, None).grid == grid


def test_launch_is_read_out_of_an_identity() -> None:
    launch = "grid=(64, 2, 1) block=(32, 8, 1) shared=0"
    found = known_launch(Identity(code="c", launch=launch, arguments=ARGUMENTS))
    assert found is not None
    assert (found.grid, found.block, found.warps) == ((64, 2, 1), (32, 8, 1), 8)
    assert found.integers == (None, -7, 0, 1, None, None, None, 9, None)
    assert found.sizes == (8, 4, 8, 1, 4, 8, 8, 8, 8)
    short = known_launch(Identity(code="c", launch=launch, arguments=ARGUMENTS[:2]))
    pointer, number = Parameter(offset=0, size=8), Parameter(offset=8, size=4)
    assert short is not None
    assert [short.fits(one) for one in ((pointer, number), (pointer, pointer), (pointer,))] == [True, False, False]
    for callable_or_none in (Identity(code="", launch="callable"), None):
        assert known_launch(callable_or_none) is None


# --- lines ---------------------------------------------------------------------------------------


def test_figures_are_those_that_are_known() -> None:
    assert _figures(Side(arch="sm_90", time_ns=1e6, record=time_of(bytes=3_600_000_000))) == ["time 1 ms", "3.6 TB/s"]
    assert _figures(Side(arch="sm_90")) == ["none"]


def test_causes_and_verdicts_that_tell_something_are_told(tmp_path: Path) -> None:
    def told(work: WorkloadEvidence) -> str:
        test = TestEvidence(module=KEY.module, test=KEY.test, workloads=(work,))
        lines = list(explain_all(BaselineStore(tmp_path), [(test, work)], None))
        assert all(len(line) <= WIDTH for line in lines)
        return " ".join(" ".join(lines).split())

    same = Judgement(key=KEY, target="sm_90", kind="static", verdict=Verdict.SAME, reason="nothing that gates")
    unchanged = Judgement(key=KEY, target="sm_80", kind="static", verdict=Verdict.UNCHANGED)
    one = Advice(cause="bank conflicts", evidence=(), gain=0.2, counted=True)
    found = told(WorkloadEvidence(key=KEY, judgements=(unchanged, same), advice=(one,)))
    for words in ("baseline: none for this workload: record one with pytest --update-baselines",
                  "copy SAME on sm_90 (static) nothing that gates", "cause: bank conflicts"):  # fmt: skip
        assert words in found
    assert "UNCHANGED" not in found
    assert "cause: none can be named without a baseline" in told(WorkloadEvidence(key=KEY))
