"""Without a GPU, machine code passes only if the work is that of the times on record, and a red verdict stays red."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from run_samples import judgement, key, workload

from pytest_gpuperf.model.task import Revision, UntimedWork
from pytest_gpuperf.model.time_record import Identity, TimeRecord
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.session.static_gate import RECORD_BY_NAME, same_work

IDENTITY = Identity(code="aa", launch="grid=(64, 1, 1) block=(256, 1, 1) shared=0", arguments=("int32=7",))
EDITED = msgspec.structs.replace(IDENTITY, code="bb")
OTHER_ARGUMENTS = msgspec.structs.replace(EDITED, arguments=("int32=8",))
OTHER_LAUNCH = msgspec.structs.replace(EDITED, launch="grid=(32, 1, 1) block=(512, 1, 1) shared=0")


def told(
    verdict: Verdict, *on_record: Identity, now: Identity | None = IDENTITY, has_gpu: bool = False,
    revision: Revision | None = None, launch_changed: bool = False, **changes: Any,
) -> Judgement:  # fmt: skip
    """What becomes of a verdict on machine code where each GPU on record timed one of these."""
    times = {
        f"gpu-{number}": TimeRecord(identity=identity, timer="cupti", cache="cold", rounds=())
        for number, identity in enumerate(on_record)
    }
    store = SimpleNamespace(devices=lambda: [*times, "gpu-without"], time=lambda device, _: times.get(device))
    worker: Any = SimpleNamespace(has_gpu=has_gpu, revision=revision, store=store)
    work = workload("copy", **{"identity": now, "cache": "cold", **changes})
    given = msgspec.structs.replace(judgement(verdict), reason="by its code", launch_changed=launch_changed)
    (found,) = same_work(worker, work, [given])
    return found


@pytest.mark.parametrize("verdict", [Verdict.UNCHANGED, Verdict.SAME, Verdict.BETTER])
def test_other_work_neither_passes_nor_is_a_gain(verdict: Verdict) -> None:
    found = told(verdict, OTHER_ARGUMENTS)
    assert (found.verdict, found.reason.endswith(RECORD_BY_NAME)) == (Verdict.NOT_COMPARABLE, True)


@pytest.mark.parametrize("verdict", [Verdict.WORSE, Verdict.NEW])
@pytest.mark.parametrize("recorded", [OTHER_ARGUMENTS, OTHER_LAUNCH])
def test_a_verdict_that_is_no_pass_stays_with_other_work_too(verdict: Verdict, recorded: Identity) -> None:
    assert (told(verdict, recorded).verdict, told(verdict, recorded).reason) == (verdict, "by its code")


@pytest.mark.parametrize("verdict", [Verdict.UNCHANGED, Verdict.SAME, Verdict.BETTER, Verdict.WORSE])
def test_the_work_on_record_is_judged_by_its_code(verdict: Verdict) -> None:
    assert (told(verdict, EDITED).verdict, told(verdict, EDITED).reason) == (verdict, "by its code")
    assert told(verdict).verdict is verdict


def test_of_several_gpus_the_one_whose_record_is_nearest_tells() -> None:
    assert told(Verdict.UNCHANGED, OTHER_ARGUMENTS, OTHER_LAUNCH, IDENTITY).verdict is Verdict.UNCHANGED
    assert told(Verdict.UNCHANGED, OTHER_ARGUMENTS, OTHER_LAUNCH).verdict is Verdict.SAME
    assert told(Verdict.UNCHANGED, OTHER_ARGUMENTS, OTHER_ARGUMENTS).verdict is Verdict.NOT_COMPARABLE


def test_unchanged_code_under_another_launch_is_left_to_its_time() -> None:
    found = told(Verdict.UNCHANGED, OTHER_LAUNCH)
    assert (found.verdict, found.launch_changed) == (Verdict.SAME, True)
    assert found.reason.endswith(": its time will tell")
    again = told(Verdict.SAME, OTHER_LAUNCH, launch_changed=True)
    assert again.reason.endswith(": its time will tell")


def test_changed_code_under_another_launch_keeps_its_own_words() -> None:
    found = told(Verdict.SAME, OTHER_LAUNCH)
    assert (found.reason, found.launch_changed) == ("by its code", False)


@pytest.mark.parametrize("known", [{"has_gpu": True}, {"now": None}, {"cache": None}, {"facts_asked": True}])
def test_where_a_gpu_tells_or_nothing_is_known_code_is_judged_as_it_is(known: dict[str, Any]) -> None:
    assert told(Verdict.UNCHANGED, OTHER_ARGUMENTS, **known).verdict is Verdict.UNCHANGED


def test_another_state_of_the_cache_is_other_work() -> None:
    assert told(Verdict.UNCHANGED, IDENTITY, cache="warm").verdict is Verdict.NOT_COMPARABLE


@pytest.mark.parametrize("facts_asked", [False, True])
def test_beside_a_revision_what_it_would_run_here_tells_and_no_record(facts_asked: bool) -> None:
    other = {str(key()): UntimedWork(identity=OTHER_ARGUMENTS, cache="cold")}
    beside = Revision(commit="c0", name="c0", archs=("sm_90",), untimed=other)
    found = told(Verdict.UNCHANGED, IDENTITY, revision=beside, facts_asked=facts_asked)
    assert (found.verdict, RECORD_BY_NAME in found.reason) == (Verdict.NOT_COMPARABLE, False)
    unknown = Revision(commit="c0", name="c0", archs=("sm_90",))
    assert told(Verdict.UNCHANGED, OTHER_ARGUMENTS, revision=unknown).verdict is Verdict.UNCHANGED
