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
    for those, verbosity in ((reports[: failures.LEAST_FAILURES - 1], 0), (reports, 1)):  # few, and -v
        found, stats = groups(*those, verbosity=verbosity)
        found.leave(found.named)
        assert stats["failed"] == those


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
