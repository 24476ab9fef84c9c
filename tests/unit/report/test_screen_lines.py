"""The last screen: tables folded where they are long, failures that are alike, remarks and the next steps."""

from __future__ import annotations

import shlex
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from record_samples import static_of

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import Recorded, TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Advice, Change, Judgement, TimeFigures, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.report.document import rows_of
from pytest_gpuperf.report.failures import RedGroups, severity, signature
from pytest_gpuperf.report.message import LEAST_GAIN, hints_of
from pytest_gpuperf.report.order import MARKUP, counted, shortened
from pytest_gpuperf.report.remarks import next_steps, stale_lines
from pytest_gpuperf.report.tables import Table, static_table, update_table


def case(test: str, *verdicts: Verdict) -> TestEvidence:
    works = []
    for number, verdict in enumerate(verdicts):
        key = Key("test_k.py", test, f"w{number}")
        judged = Judgement(key=key, target="sm_90", kind="static", verdict=verdict)
        works.append(WorkloadEvidence(key=key, judgements=(judged,), static={"sm_90": static_of(registers=40)}))
    return TestEvidence(module="test_k.py", test=test, workloads=tuple(works))


def lines_of(*tests: TestEvidence, whole: bool = False) -> list[str]:
    """Below the heads."""
    table = static_table(rows_of(tests), whole=whole)
    return [" ".join(line[0].split()).replace("40 / 0 / 50% ", "") for line in table.lines()[1:]] if table else []


PASSING = [case(f"test_fine{number}", Verdict.SAME, Verdict.UNCHANGED) for number in range(8)]


def test_long_table_is_folded_with_the_worst_function_first() -> None:
    mixed = [case(f"test_scale[{size}]", Verdict.UNCHANGED if size else Verdict.NEW) for size in range(64)]
    bad = [case(f"test_bad[{size}]", Verdict.WORSE) for size in range(3)]
    assert lines_of(*mixed, *bad, *PASSING) == [
        "test_k.py::test_bad[…] 3 workloads WORSE",
        "test_k.py::test_scale[0] [w0] NEW",
    ]
    assert lines_of(*PASSING) == []
    many = case("test_many", *[Verdict.WORSE] * 6, Verdict.SAME)
    assert lines_of(many, *PASSING) == ["test_k.py::test_many 6 workloads WORSE"]
    several = [case(f"test_{name}", Verdict.WORSE) for name in "abcdefgh"]
    assert lines_of(*several, *PASSING)[-1] == "and 2 workloads more; -v lists every one"


def test_short_table_lists_every_workload_below_its_test() -> None:
    tests = [case("test_a", Verdict.SAME), case("test_b", Verdict.SAME, Verdict.WORSE)]
    assert lines_of(*tests) == ["test_k.py::test_b", "w1 WORSE", "w0 SAME", "test_k.py::test_a", "w0 SAME"]
    assert len(lines_of(*PASSING, whole=True)) == 24
    assert counted([Verdict.UNCHANGED, None, Verdict.WORSE, Verdict.UNCHANGED]) == "1 WORSE, 2 UNCHANGED, 1 not judged"
    assert {*MARKUP} == set(Verdict)
    assert list(MARKUP)[-1] is Verdict.UNCHANGED  # a change on one architecture hides behind no other


@pytest.mark.parametrize("name", ["test_transpose[padded-32x32]", "short"])
def test_long_name_loses_its_middle(name: str) -> None:
    for width in (1, 2, 5, 10, 60):
        found = shortened(name, width)
        assert len(found) <= width
        assert found == name or width < 4 or ("…" in found and name.startswith(found.partition("…")[0]))


@pytest.mark.parametrize("width", [60, 80, 100, None])
def test_table_fits_the_terminal_and_names_the_columns_that_do_not(width: int | None) -> None:
    table = Table("registers", "sm_80", "sm_90", "sm_120", "verdict")
    table.row("test_module.py::test_with_a_very_long_name_indeed[" + "x" * 100 + "]")
    table.row("a workload of which somebody gave a long name to", *["120 / 2048 / 100%"] * 3, "WORSE")
    head, *_, last = [line[0] for line in table.lines(width)]
    missing = [name for name in ("sm_80", "sm_90", "sm_120") if name not in head]
    assert len(missing) == {60: 2, 80: 1, 100: 0, None: 0}[width]
    assert last == f"(no room for: {', '.join(missing)})" if missing else last.endswith("WORSE")
    if width is not None:
        assert max(len(line[0]) for line in table.lines(width)) <= width


def test_update_folds_equal_changes_of_a_function() -> None:
    recorded = [
        Recorded(Key("test_a.py", f"test_a[{size}]", "copy"), "sm_90", static_of(registers=32),
                 static_of(registers=registers, code="d1" * 32))
        for size, registers in enumerate((40, 48) * 8)
    ]  # fmt: skip
    table = update_table(recorded)
    assert table is not None
    rows = [line[0] for line in table.lines()[1:]]
    assert [row.split("  ")[-1].strip() for row in rows] == ["registers 32 -> 40", "registers 32 -> 48"]
    assert all(row.startswith("test_a.py::test_a[\u2026]  8 workloads  ") for row in rows)


def failed(test: str, red: str = "", worse: float = 1.0) -> Any:
    place = {"nodeid": f"test_k.py::{test}", "location": ("test_k.py", 3, test)}
    return SimpleNamespace(**place, longrepr="words", gpuperf_red=red, gpuperf_severity=worse)


def test_many_alike_are_one_message_and_all_are_counted_in_the_end() -> None:
    reports, own = [failed(f"test_a[{n}]", "stack", worse=1 + n / 100) for n in range(64)], failed("test_own")
    reporter: Any = SimpleNamespace(stats={"failed": [*reports, own]}, config=SimpleNamespace(get_verbosity=lambda: 0))
    found = RedGroups(reporter)
    found.leave(found.named)
    named = [report.location[2] for report in reporter.stats["failed"]]
    assert named == ["test_own", "test_a[63] and 63 more like it"]
    found.leave(found.failed)
    assert reporter.stats["failed"] == [*reports, own]
    assert reports[63].location[2] == "test_a[63]"


def judged(name: str = "w", before: float = 1, after: float = 2, what: str = "stack frame") -> Judgement:
    change = Change(what=what, before=before, after=after, direction="worse")
    return Judgement(
        key=Key("test_k.py", "test", name), target="sm_90", kind="static", verdict=Verdict.WORSE, changes=(change,)
    )


def test_what_changed_and_its_cause_tell_failures_apart_and_figures_and_names_do_not() -> None:
    ordinary, cause = signature([judged()], {}), SimpleNamespace(cause="spills")
    assert signature([judged("v", after=7)], {}) == ordinary
    assert signature([judged(what="occupancy")], {}) != ordinary
    assert signature([judged()], {Key("test_k.py", "test", "w"): [cause]}) != ordinary  # type: ignore[dict-item]
    figures = TimeFigures(method="paired", ratio=1.07)
    slower = Judgement(key=Key("m", "t", "w"), target="g", kind="time", verdict=Verdict.SLOWER, time=figures)
    assert (severity([slower, judged()]), severity([judged()])) == (pytest.approx(1.07), 1)
    undecided = [
        Judgement(key=Key("m", "t", "w"), target="gpu", kind="time", verdict=Verdict.INCONCLUSIVE, reason=reason)
        for reason in ("after 44 blocks", "after 7 blocks")
    ]
    assert signature(undecided[:1], {}) == signature(undecided[1:], {})


KEY = Key(module="suite/test_a.py", test="test_a", workload="copy")
STATIC = Judgement(key=KEY, target="sm_90", kind="static", verdict=Verdict.SAME)


def work(verdict: Verdict = Verdict.SAME, key: Key = KEY, **figures: Any) -> WorkloadEvidence:
    known = {"cause": "bank conflicts", "evidence": (), "gain": 0.2, "arch": "sm_90"}
    judged = msgspec.structs.replace(STATIC, key=key, verdict=verdict)
    return WorkloadEvidence(key=key, judgements=(judged,), advice=(Advice(**{**known, **figures}),))


def evidence(*works: WorkloadEvidence, **fields: Any) -> list[TestEvidence]:
    return [TestEvidence(module=KEY.module, test=KEY.test, workloads=works, **fields)]


def test_stale_baselines_have_one_line_with_its_command() -> None:
    """Of what is nothing but better."""
    static = Judgement(key=KEY, target="t", kind="static", verdict=Verdict.BETTER)
    counters = msgspec.structs.replace(static, kind="counters")
    slower = Judgement(key=KEY, target="t", kind="time", verdict=Verdict.SLOWER)

    def lines(*judgements: Judgement) -> list[str]:
        return stale_lines(evidence(WorkloadEvidence(key=KEY, judgements=judgements)), ["--gpuperf-baselines=my perf"])

    (line,) = lines(static, counters)
    assert line.startswith("1 workload is FASTER or BETTER than the baseline: the baseline is stale: accept the gain ")
    assert "with pytest --gpuperf-ncu --update-baselines '--gpuperf-baselines=my perf', or " in line
    assert "with pytest --update-baselines '" in lines(static)[0]
    assert lines(static, slower) == lines() == []


def test_likely_cause_has_its_gain_and_a_command_of_one_word_to_a_shell() -> None:
    key = msgspec.structs.replace(KEY, test="test_a[it's $(date)]")
    for verdict, result in ((Verdict.SAME, "no gated metric regressed"), (Verdict.INCONCLUSIVE, "the verdict is open")):
        (line,) = hints_of(work(verdict, key))
        words, _, command = line.partition(": ")
        assert words == (
            f"the machine code changed, {result}; likely bank conflicts on sm_90 (gain about 20 %, by the machine code)"
        )
        assert shlex.split(command) == ["gpuperf", "explain", key.node_id]
    for figures in ({"gain": LEAST_GAIN * 0.99}, {"counted": True}, {"same_code": True}, {"outweighed": True}):
        assert hints_of(work(**figures)) == [], "it is no news"
    assert hints_of(work(Verdict.WORSE)) == []
    same = work(Verdict.SAME)
    (line,) = hints_of(msgspec.structs.replace(same, advice=(*same.advice, *same.advice)))
    assert (line.count("; likely bank conflicts on sm_90 ("), line.count("gpuperf explain")) == (2, 1)
    (step,) = next_steps(rows_of(evidence(work(Verdict.WORSE, key))), Options())
    command = step[step.index("gpuperf explain") :].partition("; fix it")[0]
    assert shlex.split(command) == ["gpuperf", "explain", key.node_id]


@pytest.mark.parametrize(("kind", "options", "again", "accept"), [
    ("static", {"enabled": True}, "pytest --gpuperf --lf", "pytest --update-baselines"),
    ("static", {"enabled": True, "against": "merge-base:main"},
     "pytest --gpuperf --gpuperf-against=merge-base:main --lf", ""),
    ("counters", {"enabled": True, "ncu": ("default", "a.sum")},
     "pytest --gpuperf --gpuperf-ncu=default,a.sum --lf", "pytest --gpuperf-ncu --update-baselines"),
    ("counters", {"enabled": False, "ncu": ("memory",)},
     "pytest --gpuperf-ncu=memory --lf", "pytest --gpuperf-ncu --update-baselines"),
    ("time", {"enabled": True, "repeated": ("--gpuperf-arch=sm_80", "--gpuperf-baselines=my perf")},
     "pytest --gpuperf --gpuperf-arch=sm_80 '--gpuperf-baselines=my perf' --lf",
     "pytest --update-baselines --gpuperf-arch=sm_80 '--gpuperf-baselines=my perf'"),
])  # fmt: skip
def test_next_step_judges_as_this_run_did(kind: Any, options: dict[str, Any], again: str, accept: str) -> None:
    judged = Judgement(key=KEY, target="sm_90", kind=kind, verdict=Verdict.WORSE)
    rows = rows_of(evidence(WorkloadEvidence(key=KEY, judgements=(judged,))))
    (line,) = next_steps(rows, Options(**options))
    words = f"; accept an intended change: {accept}" if accept else ""
    assert line.partition("; fix it, and run ")[2] == f"{again}{words}"
