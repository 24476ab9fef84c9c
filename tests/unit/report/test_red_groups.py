"""Failures that are alike are shown once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import Change, Judgement, TimeFigures, Verdict
from pytest_gpuperf.report import failures
from pytest_gpuperf.report.failures import RedGroups, severity, signature


def failed(test: str, red: str = "", worse: float = 1.0) -> Any:
    place = {"nodeid": f"test_k.py::{test}", "location": ("test_k.py", 3, test)}
    return SimpleNamespace(**place, longrepr="words", gpuperf_red=red, gpuperf_severity=worse)


def groups(*reports: Any, verbosity: int = 0) -> tuple[RedGroups, dict[str, list[Any]]]:
    stats: dict[str, list[Any]] = {"failed": list(reports)}
    reporter: Any = SimpleNamespace(stats=stats, config=SimpleNamespace(get_verbosity=lambda: verbosity))
    return RedGroups(reporter), stats


def names(stats: dict[str, list[Any]]) -> list[str]:
    return [report.location[2] for report in stats["failed"]]


def test_many_alike_are_one_message_and_all_are_counted_in_the_end() -> None:
    reports = [failed(f"test_a[{n}]", "stack", worse=1 + n / 100) for n in range(64)]
    own = failed("test_own")
    found, stats = groups(*reports, own)
    found.leave(found.named)
    assert names(stats) == ["test_own", "test_a[63] and 63 more like it"]
    found.leave(found.failed)
    assert stats["failed"] == [*reports, own]
    assert reports[63].location[2] == "test_a[63]"


def test_few_failures_and_verbose_runs_are_left_to_pytest() -> None:
    few = [failed(f"test_a[{n}]", "stack") for n in range(failures.LEAST_FAILURES - 1)]
    many = [failed(f"test_a[{n}]", "stack") for n in range(64)]
    for reports, verbosity in ((few, 0), (many, 1)):
        found, stats = groups(*reports, verbosity=verbosity)
        found.leave(found.named)
        assert stats["failed"] == reports


def test_every_kind_of_error_is_named_beside_what_the_gate_found() -> None:
    errors = [failed(f"test_error[{n}]", f"CompileError: {n % 13}") for n in range(26)]
    judged = [failed(f"test_{kind}", str(kind), worse=2.0) for kind in range(11)]
    found, stats = groups(*errors, *judged)
    found.leave(found.named)
    named = names(stats)
    assert [name for name in named if "error" in name] == [f"test_error[{n}] and 1 more like it" for n in range(13)]
    assert len(named) == 13 + 11


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
    undecided = [
        Judgement(key=Key("m", "t", "w"), target="gpu", kind="time", verdict=Verdict.INCONCLUSIVE, reason=reason)
        for reason in ("after 44 blocks", "after 7 blocks")
    ]
    assert signature(undecided[:1], {}) == signature(undecided[1:], {})


def test_the_largest_ratio_is_how_bad_a_failure_is() -> None:
    figures = TimeFigures(method="paired", ratio=1.07)
    slower = Judgement(key=Key("m", "t", "w"), target="g", kind="time", verdict=Verdict.SLOWER, time=figures)
    assert (severity([slower, judged()]), severity([judged()])) == (pytest.approx(1.07), 1)
