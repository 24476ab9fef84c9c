"""What a shard leaves in its report, and the options that all shards together stand for."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from missed_samples import NODE, told
from run_samples import H200, MODULE, TEST, Run, workload

from pytest_gpuperf.context import stash
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.revision import Revision
from pytest_gpuperf.report.run_part import Missed, RunPart
from pytest_gpuperf.results import Results
from pytest_gpuperf.session.missed_records import MISSED
from pytest_gpuperf.session.run_parts import BEAR_UPON_VERDICTS, asked_for, has_tests, options_of, part_of

RAN = TestEvidence(module=MODULE, test=TEST, workloads=(workload(),), device=H200)


def part(run: Run, *tests: TestEvidence, status: int = 0) -> RunPart:
    return part_of(run.session(status), Results.merged(tests, {"a": "it failed"}, 3))


def test_a_shard_has_tests_if_the_run_has_any(run: Run) -> None:
    run.collected(TEST, plan="p")
    assert has_tests(run.config)
    run.collected(TEST)
    assert not has_tests(run.config)
    run.config.stash[stash.FINDING].found = None
    assert not has_tests(run.config)


def test_it_leaves_what_a_run_of_all_tests_would_have_known(gated: Run) -> None:
    told(gated)
    gated.worker.expected_archs = ("sm_90", "sm_80")
    found = part(gated, RAN)
    assert found == RunPart(
        plan=found.plan, complete=True, tests_run=3, options=asked_for(gated.options, gated.config),
        archs=("sm_80", "sm_90"), models=(H200.slug,), without_gpu=False, full=True, root=str(gated.config.rootpath),
        failures={"a": "it failed"}, missed=gated.config.stash[MISSED],
    )  # fmt: skip
    assert found.missed.candidates


def test_a_shard_says_whether_it_had_a_gpu_a_revision_and_all_there_is(gated: Run) -> None:
    stopped = msgspec.structs.replace(RAN, status="static only", device=None)
    gated.worker.revision = Revision(commit="c0", name="c0 (yesterday)", archs=())
    gated.config.option.keyword = "copy"
    found = part(gated, stopped)
    assert (found.without_gpu, found.models, found.revision, found.full) == (True, (), "c0 (yesterday)", False)
    assert found.missed == Missed()


@pytest.mark.parametrize(("status", "complete"), [(0, True), (1, True), (2, False), (3, False), (4, False), (5, True)])
def test_a_shard_that_was_ended_is_not_complete(gated: Run, status: int, complete: bool) -> None:
    assert part(gated, status=status).complete == complete
    gated.config.stash[stash.FINDING].ends.pop(NODE)
    assert not part(gated, status=status).complete
    gated.config.stash[stash.FINDING].found = None
    assert not part(gated, status=status).complete


@pytest.mark.parametrize(
    "other", ["plan", "tests", "modules", "failed", "skipped", "places", "narrowed", "not whole", "groups"]
)
def test_shards_of_one_run_have_one_plan(gated: Run, other: str) -> None:
    gated.collected(TEST, "test_b", plan="p")
    first = part(gated).plan
    gated.collected("test_b", TEST, plan="p", selected=frozenset())  # what this shard runs has no say
    assert part(gated).plan == first
    changes = {
        "plan": {"plan": "q"}, "tests": {"tests": frozenset({NODE})}, "modules": {"modules": frozenset()},
        "failed": {"failed": frozenset({"b.py"})}, "skipped": {"skipped": {"b.py": "old"}},
        "groups": {"tests": frozenset(), "modules": frozenset({NODE, f"{MODULE}::test_b", MODULE})},
    }  # fmt: skip
    gated.collected(TEST, "test_b", **{"plan": "p", **changes.get(other, {})})
    if other == "places":
        gated.searched(".", "more")
    elif other == "narrowed":
        gated.config.option.keyword = "copy"
    elif other == "not whole":
        gated.searched("tests")
        first = part(gated).plan
        gated.config.args_source = pytest.Config.ArgsSource.TESTPATHS
    assert part(gated).plan != first


def test_options_are_as_seen_from_the_root(run: Run) -> None:
    root: Path = run.config.rootpath
    asked = asked_for(run.with_options(archs=("sm_90", "sm_80"), baselines=root / "a" / "b").options, run.config)
    assert asked.keys() == {*BEAR_UPON_VERDICTS, "baselines"}
    assert (asked["archs"], asked["baselines"], asked["open"]) == (["sm_90", "sm_80"], "a/b", run.options.open)
    assert "baselines" not in asked_for(run.with_options(against="main").options, run.config)


def test_all_shards_together_stand_for_the_same_options(gated: Run) -> None:
    gated.with_options(archs=("sm_90",), strict=True)
    told_by = msgspec.json.decode(msgspec.json.encode(part(gated)), type=RunPart)
    again = options_of(told_by)
    assert {name: getattr(again, name) for name in BEAR_UPON_VERDICTS} == {
        name: getattr(gated.options, name) for name in BEAR_UPON_VERDICTS
    }
    assert (again.enabled, again.baselines) == (True, gated.config.rootpath / "baselines")
    elsewhere = options_of(msgspec.structs.replace(told_by, root="/elsewhere"))
    assert elsewhere.baselines == Path("/elsewhere/baselines")
    against = options_of(part(gated.with_options(against="main")))
    assert (against.against, against.baselines) == ("main", gated.config.rootpath)
