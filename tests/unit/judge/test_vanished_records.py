"""Which records no test came to, and why, decided from what a run met."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.judge.vanished import (
    Ended,
    OnRecord,
    RunSeen,
    Vanished,
    WhyVanished,
    asks_for_gpu,
    candidates,
    settled,
)
from pytest_gpuperf.model.evidence import Key

MODULE, NODE = "suite/test_a.py", "suite/test_a.py::test_x"
RECORD = OnRecord(Key(module=MODULE, test="test_x", workload="k"), "sm_90", "static")
TIME = RECORD._replace(target="nvidia-h200", kind="time")
REACHED = RunSeen(
    tests={NODE}, selected={NODE}, modules={MODULE}, failed=(), skipped={}, ends={NODE: Ended("passed")},
    reached={NODE: {RECORD}}, covered={MODULE}, missing=(), full=True, whole=True,
)  # fmt: skip


def missed(
    run: RunSeen, record: OnRecord = RECORD, targets: Collection[str] = ("sm_90",), *, has_gpu: bool = True
) -> list[Vanished]:
    return settled(candidates([record], run), targets, has_gpu=has_gpu)


def cause(targets: Collection[str] = ("sm_90",), **changes: object) -> WhyVanished | None:
    found = missed(dataclasses.replace(REACHED, **changes), targets=targets)  # type: ignore[arg-type]
    return found[0].cause if found else None


def test_what_a_test_came_to_is_there() -> None:
    assert cause() is None


UNCOLLECTED = {"tests": (), "selected": (), "modules": (), "ends": {}, "reached": {}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"tests": (), "selected": (), "ends": {}, "reached": {}}, WhyVanished.DELETED),
        ({"selected": (), "ends": {}, "reached": {}}, WhyVanished.DESELECTED),
        ({"selected": (), "ends": {}, "reached": {}, "full": False}, None),
        ({"selected": (), "ends": {}, "reached": {}, "elsewhere": {NODE}}, None),
        ({"selected": (), "ends": {}, "reached": {}, "targets": {"sm_80"}}, None),
        ({"ends": {}, "reached": {}}, None),
        ({"ends": {NODE: Ended("failed")}, "reached": {}}, None),
        ({"ends": {NODE: Ended("skipped", "flaky")}, "reached": {}}, WhyVanished.SKIPPED),
        ({"ends": {NODE: Ended("skipped", "flaky")}}, None),
        ({"ends": {NODE: Ended("xfailed")}, "reached": {NODE: {TIME}}}, WhyVanished.SKIPPED),
        ({"reached": {}}, WhyVanished.NOT_ASKED),
        ({"reached": {}, "targets": {"sm_80"}}, None),
        ({**UNCOLLECTED, "skipped": {MODULE: "flaky"}}, WhyVanished.SKIPPED),
        ({**UNCOLLECTED, "skipped": {"suite/__init__.py": "flaky"}}, WhyVanished.SKIPPED),
        ({**UNCOLLECTED, "skipped": {"suit": "flaky"}, "missing": {MODULE}}, WhyVanished.FILE_GONE),
        ({**UNCOLLECTED, "failed": {MODULE}}, None),
        ({**UNCOLLECTED, "failed": {"suite"}}, None),
        ({"tests": (), "failed": {f"{MODULE}::TestOther"}}, WhyVanished.DELETED),
        ({**UNCOLLECTED, "missing": {MODULE}}, WhyVanished.FILE_GONE),
        ({**UNCOLLECTED, "missing": {MODULE}, "full": False}, None),
        (UNCOLLECTED, WhyVanished.NOT_COLLECTED),
        ({**UNCOLLECTED, "covered": ()}, WhyVanished.ELSEWHERE),
        ({**UNCOLLECTED, "covered": (), "whole": False}, None),
        ({"tests": (), "covered": ()}, None),
        ({"tests": (), "selected": (), "covered": (), "reached": {}}, None),
        ({"selected": (), "covered": (), "ends": {}, "reached": {}}, None),
        ({"covered": (), "ends": {NODE: Ended("skipped", "flaky")}, "reached": {}}, WhyVanished.SKIPPED),
        ({"covered": (), "ends": {NODE: Ended("xfailed")}, "reached": {NODE: {TIME}}}, WhyVanished.SKIPPED),
        ({"covered": (), "reached": {}}, WhyVanished.NOT_ASKED),
        ({"covered": (), "ends": {NODE: Ended("failed")}, "reached": {}}, None),
        ({"covered": ()}, None),
    ],
)
def test_each_cause(changes: dict[str, Any], expected: WhyVanished | None) -> None:
    assert cause(**changes) is expected


@pytest.mark.parametrize(("has_gpu", "reason", "wanted"), [
    (False, "needs a GPU", True), (True, "needs a GPU", False), (False, "flaky", False),
    (False, "could not import 'cupy': No module named 'cupy'", True),
])  # fmt: skip
def test_a_skip_that_speaks_of_a_gpu_is_for_want_of_one_where_there_is_none(
    has_gpu: bool, reason: str, wanted: bool
) -> None:
    run = dataclasses.replace(REACHED, ends={NODE: Ended("skipped", reason)}, reached={})
    (found,) = missed(run, has_gpu=has_gpu)
    assert (found.needs_gpu, found.reason, asks_for_gpu(reason)) == (wanted, reason, reason != "flaky")


@given(st.sampled_from(["passed", "skipped", "xfailed"]), st.booleans(), st.booleans(), st.booleans())
def test_no_record_of_a_run_in_full_is_passed_over(how: str, exists: bool, has_gpu: bool, asked: bool) -> None:
    run = dataclasses.replace(
        REACHED, tests={NODE} if exists else (), ends={NODE: Ended(how)},  # type: ignore[arg-type]
        reached={NODE: {RECORD}} if asked else {},
    )  # fmt: skip
    assert bool(missed(run, has_gpu=has_gpu)) == (not exists or not asked)


# --- fixtures --------------------------------------------------------------------------------------


OTHER = "suite/test_b.py::test_y"
OF_SESSION = OnRecord(Key(module="suite/conftest.py", test="fixture kernels[fast]", workload="k"), "sm_90", "static")
OF_MODULE = OnRecord(Key(module=MODULE, test="fixture kernels", workload="k"), "sm_90", "static")
OF_CLASS = OnRecord(Key(module=MODULE, test="TestA::fixture kernels", workload="k"), "sm_90", "static")
FIXTURES = dataclasses.replace(
    REACHED, tests={NODE, OTHER}, selected={NODE, OTHER}, modules={MODULE, "suite/test_b.py"}, reached={},
    covered={MODULE, "suite/conftest.py"}, ends={NODE: Ended("passed"), OTHER: Ended("passed")},
    users={OF_SESSION.key.node_id: {NODE, OTHER}, OF_MODULE.key.node_id: {NODE}},
)  # fmt: skip


def fixture_cause(record: OnRecord = OF_SESSION, **changes: object) -> WhyVanished | None:
    found = missed(dataclasses.replace(FIXTURES, **changes), record)  # type: ignore[arg-type]
    return found[0].cause if found else None


@pytest.mark.parametrize(
    ("record", "changes", "expected"),
    [
        (OF_SESSION, {"reached": {OF_SESSION.key.node_id: {OF_SESSION}}}, None),
        (OF_SESSION, {"reached": {OF_SESSION.key.node_id: {RECORD}}}, None),
        (OF_SESSION, {}, WhyVanished.NOT_ASKED),
        (OF_SESSION, {"selected": {OTHER}}, WhyVanished.NOT_ASKED),
        (OF_SESSION, {"selected": ()}, WhyVanished.DESELECTED),
        (OF_SESSION, {"selected": (), "full": False}, None),
        (OF_SESSION, {"selected": (), "elsewhere": {OTHER}}, None),
        (OF_SESSION, {"ends": {NODE: Ended("passed"), OTHER: Ended("failed")}}, None),
        (OF_SESSION, {"ends": {NODE: Ended("skipped"), OTHER: Ended("skipped")}}, WhyVanished.SKIPPED),
        (OF_SESSION, {"ends": {NODE: Ended("xfailed"), OTHER: Ended("xfailed")}}, WhyVanished.SKIPPED),
        (OF_SESSION, {"ends": {NODE: Ended("skipped")}}, WhyVanished.SKIPPED),
        (OF_SESSION, {"failed": {"suite/test_c.py"}}, None),
        (OF_SESSION, {"users": {}}, WhyVanished.DELETED),
        (OF_SESSION, {"users": {}, "full": False}, None),
        (OF_SESSION, {"users": {}, "whole": False}, None),
        (OF_SESSION, {"users": {}, "covered": {MODULE}}, None),
        (OF_SESSION, {"users": {}, "missing": {"suite/conftest.py"}}, WhyVanished.FILE_GONE),
        (OF_SESSION, {"users": {}, "skipped": {"suite/test_c.py": "no cupy"}}, WhyVanished.SKIPPED),
        (OF_MODULE, {}, WhyVanished.NOT_ASKED),
        (OF_MODULE, {"users": {}}, WhyVanished.DELETED),
        (OF_MODULE, {"users": {}, "whole": False}, WhyVanished.DELETED),
        (OF_MODULE, {"selected": {OTHER}}, WhyVanished.DESELECTED),
        (OF_MODULE, {"covered": (), "modules": {"suite/test_b.py"}, "selected": {OTHER}}, None),
        (OF_MODULE, {"covered": (), "ends": {NODE: Ended("skipped")}}, WhyVanished.SKIPPED),
        (OF_MODULE, {"covered": (), "users": {}}, None),
        (OF_SESSION, {"covered": (), "selected": {OTHER}, "ends": {OTHER: Ended("xfailed")}}, WhyVanished.SKIPPED),
        (OF_SESSION, {"covered": (), "selected": {OTHER}, "ends": {OTHER: Ended("failed")}}, None),
        (OF_SESSION, {"covered": (), "selected": ()}, None),
        (OF_SESSION, {"covered": (), "reached": {OF_SESSION.key.node_id: {OF_SESSION}}}, None),
        (OF_MODULE, {"skipped": {MODULE: "no cupy"}, "modules": ()}, WhyVanished.SKIPPED),
        (OF_CLASS, {}, WhyVanished.DELETED),
        (OF_CLASS, {"users": {OF_CLASS.key.node_id: {f"{MODULE}::TestA::test_z"}}}, WhyVanished.DESELECTED),
    ],
)
def test_each_cause_of_a_fixtures_kernel(
    record: OnRecord, changes: dict[str, object], expected: WhyVanished | None
) -> None:
    assert fixture_cause(record, **changes) is expected


@pytest.mark.parametrize(("how", "expected"), [("passed", WhyVanished.NOT_ASKED), ("failed", None)])
def test_one_user_that_came_to_an_end_tells_more_than_those_that_skipped(
    how: Literal["passed", "failed"], expected: WhyVanished | None
) -> None:
    users = {OF_SESSION.key.node_id: (NODE, OTHER)}
    assert fixture_cause(users=users, ends={NODE: Ended("skipped"), OTHER: Ended(how)}) is expected


def test_a_fixture_that_was_not_come_to_for_want_of_a_gpu_says_so() -> None:
    (one,) = missed(dataclasses.replace(FIXTURES, ends={NODE: Ended("skipped")}), OF_SESSION, has_gpu=False)
    assert (one.cause, one.needs_gpu) == (WhyVanished.SKIPPED, True)
    assert (one.record, one.reason) == (OF_SESSION, "it stopped before its fixture compiled")


@pytest.mark.parametrize(
    "changes", [{"tests": ()}, {**UNCOLLECTED, "missing": {MODULE}}, UNCOLLECTED, {**UNCOLLECTED, "covered": ()}]
)
def test_what_vanished_is_told_by_its_record(changes: dict[str, Any]) -> None:
    assert [one.record for one in missed(dataclasses.replace(REACHED, **changes))] == [RECORD]


@pytest.mark.parametrize("changes", [{"users": {}}, {"users": {}, "missing": {"suite/conftest.py"}}])
def test_so_is_what_vanished_with_its_fixture(changes: dict[str, Any]) -> None:
    assert [one.record for one in missed(dataclasses.replace(FIXTURES, **changes), OF_SESSION)] == [OF_SESSION]


def test_a_file_that_skips_itself_gives_its_reason() -> None:
    (of_test,) = missed(dataclasses.replace(REACHED, **{**UNCOLLECTED, "skipped": {MODULE: "no cupy"}}))
    unused = dataclasses.replace(FIXTURES, users={}, skipped={"suite/test_c.py": "no cupy"})
    (of_fixture,) = missed(unused, OF_SESSION)
    assert of_test.reason == of_fixture.reason == "no cupy"


def test_of_users_that_passed_and_others_that_stopped_early_the_first_tell() -> None:
    """All passed it by who came to its end: nobody asks for the kernel any more."""
    (one,) = missed(dataclasses.replace(FIXTURES, ends={NODE: Ended("passed")}), OF_SESSION, has_gpu=False)
    assert (one.cause, one.needs_gpu) == (WhyVanished.NOT_ASKED, False)
