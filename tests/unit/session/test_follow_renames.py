"""A NEW workload that is a renamed one: which record it continues, how it compares with that, and the remedy."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from baseline_samples import make_session
from record_samples import time_of
from run_samples import COMPILER, MODULE, TEST, Run, key, static_record, workload

from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.model.evidence import Identity, Key, StaticRecord, TimeRecord
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.revision import Revision
from pytest_gpuperf.model.verdict import EvidenceKind, Judgement, Verdict
from pytest_gpuperf.session import follow_renames
from pytest_gpuperf.session.follow_renames import name_origins

H200 = "nvidia-h200"
OLD_TEST = "test_old"
RAN = Identity(code="c0" * 32, launch="grid=(1, 1, 1) block=(32, 1, 1) shared=0")
LAUNCHED = {"block": (32, 1, 1)}


@pytest.fixture
def renaming(run: Run) -> Run:
    """A run of the whole project, whose only module has one test."""
    run.collected(TEST)
    return run


def on_record(
    run: Run, at: Key, static: StaticRecord | None = None, time: TimeRecord | None = None, compiler: str = COMPILER
) -> None:
    static_records = {("sm_90", compiler, at): static} if static is not None else {}
    times = {(H200, at): time} if time is not None else {}
    run.store.write(Update(static=static_records, time=times, sessions=[make_session(id="s1")] if times else ()))


def new(
    name: str = "copy", kinds: tuple[EvidenceKind, ...] = ("static",), verdict: Verdict = Verdict.NEW, **fields: Any
) -> WorkloadEvidence:
    judgements = [
        Judgement(key=key(name), target="sm_90" if kind == "static" else H200, kind=kind, verdict=verdict, reason="no")
        for kind in kinds
    ]
    static, judged = {"sm_90": static_record(**LAUNCHED)}, fields.pop("judgements", judgements)
    return workload(name, *judged, **{"static": static, "toolchain": COMPILER, **fields})


def followed(run: Run, *works: WorkloadEvidence, whole: bool = True) -> WorkloadEvidence:
    """What the first of these workloads of one test became."""
    book = TestBook(MODULE, TEST)
    for work in works:
        book.add(work)
    name_origins(run.config, run.worker, book, whole=whole)
    return book.workloads[works[0].key.workload]


def reasons(work: WorkloadEvidence) -> list[str]:
    return [one.reason for one in work.judgements]


def old_key(test: str = OLD_TEST, workload: str = "copy", module: str = MODULE) -> Key:
    return Key(module=module, test=test, workload=workload)


# --- which records may be continued ----------------------------------------------------------------


def test_the_record_of_a_test_that_is_gone_is_named_with_the_command_that_takes_it_along(renaming: Run) -> None:
    on_record(renaming, old_key(), static_record(**LAUNCHED))
    found = followed(renaming, new())
    assert found.was == old_key()
    assert reasons(found) == [
        f"was {MODULE}::test_old [copy], the same machine code: "
        f"run `gpuperf baselines mv {MODULE}::test_old {MODULE}::test_copy` to take its record along"
    ]
    assert found.judgements[0].verdict is Verdict.NEW


def test_what_is_not_new_is_left_alone(renaming: Run) -> None:
    on_record(renaming, old_key(), static_record(**LAUNCHED))
    same = new(verdict=Verdict.SAME)
    assert followed(renaming, same) == same
    beside = new(kinds=("memory",))
    assert followed(renaming, beside) == beside


def test_of_a_workload_with_several_verdicts_new_ones_alone_are_reworded(renaming: Run) -> None:
    on_record(renaming, old_key(), static_record(**LAUNCHED))
    two = new(kinds=("static", "time"))
    told = two.judgements[1]
    settled = Judgement(key=key(), target=H200, kind="time", verdict=Verdict.SLOWER, reason="it is")
    found = followed(renaming, new(judgements=(two.judgements[0], settled)))
    assert found.judgements[1] == settled
    assert found.judgements[0].reason.startswith("was ")
    assert told.reason == "no"


@pytest.mark.parametrize("there", ["a test", "a fixture that tests use"])
def test_what_is_there_keeps_its_record(renaming: Run, there: str) -> None:
    node = f"{MODULE}::{OLD_TEST}"
    if there == "a test":
        renaming.collected(OLD_TEST)
    else:
        renaming.collected(users={node: frozenset({"x"})})
    on_record(renaming, old_key(), static_record(**LAUNCHED))
    assert followed(renaming, new()).was is None


@pytest.mark.parametrize(
    ("collected", "places", "there", "was"),
    [
        (True, ["."], True, True),
        (False, ["."], True, False),  # nothing is known of its tests
        (True, ["tests/other"], True, False),
        (False, ["tests/other"], False, True),  # no search can find it
    ],
)
def test_a_module_counts_if_it_was_searched_for_tests_or_is_gone(
    renaming: Run, collected: bool, places: list[str], there: bool, was: bool
) -> None:
    modules = frozenset({MODULE}) if collected else frozenset()
    renaming.collected(modules=modules)
    renaming.searched(*places)
    if not there:
        (renaming.config.rootpath / MODULE).unlink()
    on_record(renaming, old_key(), static_record(**LAUNCHED))
    assert (followed(renaming, new()).was is not None) == was


def test_without_knowledge_of_what_was_collected_nothing_is_gone(renaming: Run) -> None:
    on_record(renaming, old_key(), static_record(**LAUNCHED))
    renaming.config.stash[stash.FINDING].found = None
    assert followed(renaming, new()).was is None
    del renaming.config.stash[stash.FINDING]
    assert followed(renaming, new()).was is None


def test_what_is_gone_is_found_once(renaming: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    on_record(renaming, old_key(), static_record(**LAUNCHED))
    assert followed(renaming, new()).was == old_key()
    monkeypatch.setattr(renaming.store, "all_keys", lambda: pytest.fail("asked again"))
    assert followed(renaming, new()).was == old_key()


@pytest.mark.parametrize("whole", [True, False])
def test_a_workload_of_this_test_counts_once_the_test_has_come_to_its_end(renaming: Run, whole: bool) -> None:
    on_record(renaming, old_key(TEST, "old"), static_record(**LAUNCHED))
    on_record(renaming, old_key(TEST, "kept"), static_record(**LAUNCHED))
    kept = new("kept", verdict=Verdict.UNCHANGED)
    found = followed(renaming, new(), kept, whole=whole)
    assert found.was == (old_key(TEST, "old") if whole else None)
    if whole:
        assert (
            f"run `gpuperf baselines mv '{MODULE}::{TEST} [old]' '{MODULE}::{TEST} [copy]'`"
            in found.judgements[0].reason
        )


def test_a_time_of_this_test_counts_where_there_is_a_gpu(renaming: Run, without_gpu: Run) -> None:
    on_record(renaming, old_key(TEST, "old"), time=time_of(identity=RAN))
    timed = new(kinds=("time",), static={}, toolchain="", time=time_of(identity=RAN), identity=RAN)
    assert followed(renaming, timed).was == old_key(TEST, "old")
    renaming.worker.has_gpu = False
    assert followed(renaming, timed).was is None


def test_machine_code_of_another_compiler_is_no_origin(renaming: Run) -> None:
    on_record(renaming, old_key(), static_record(kernel="other", **LAUNCHED), compiler="nvrtc 12.9.86")
    assert followed(renaming, new()).was is None
    on_record(renaming, old_key(TEST, "old"), static_record(kernel="other", **LAUNCHED), compiler="nvrtc 12.9.86")
    assert followed(renaming, new()).was is None


def test_what_was_timed_tells_more_than_machine_code(renaming: Run) -> None:
    """The same code under other arguments is other work."""
    on_record(renaming, old_key("test_a"), static_record(**LAUNCHED), time_of(identity=RAN))
    other = Identity(code=RAN.code, launch=RAN.launch, arguments=("int32=7",))
    on_record(renaming, old_key("test_b"), static_record(**LAUNCHED), time_of(identity=other))
    timed = new(kinds=("time",), time=time_of(identity=other), identity=other)
    assert followed(renaming, timed).was == old_key("test_b")
    untimed = new(identity=other)  # it was launched, and nothing was timed
    assert followed(renaming, untimed).was == old_key("test_a")


# --- how it compares with that record --------------------------------------------------------------


@pytest.mark.parametrize(
    ("midmean", "told"), [(6640.0, "0.0 % faster"), (8300.0, "25.0 % slower"), (4980.0, "25.0 % faster")]
)
def test_todays_time_is_told_beside_that_on_record(renaming: Run, midmean: float, told: str) -> None:
    on_record(renaming, old_key(), static_record(**LAUNCHED), time_of(6640.0, RAN))
    found = followed(renaming, new(kinds=("time",), time=time_of(midmean, RAN), identity=RAN))
    assert reasons(found)[0].startswith(f"was {MODULE}::test_old [copy], {told} than its record: run `")


def test_without_a_round_of_today_there_is_no_time_to_tell(renaming: Run) -> None:
    on_record(renaming, old_key(), static_record(**LAUNCHED), time_of(6640.0, RAN))
    without = msgspec.structs.replace(time_of(identity=RAN), rounds=())
    found = followed(renaming, new(kinds=("time",), time=without, identity=RAN))
    assert reasons(found)[0].startswith(f"was {MODULE}::test_old [copy]: run `")
    on_record(renaming, old_key("test_z", "z"), static_record("c9", kernel="z", **LAUNCHED))
    static = {"sm_90": static_record("c9", kernel="z", **LAUNCHED)}
    del renaming.config.stash[follow_renames.GONE]
    untimed = followed(renaming, new("w", ("time",), static=static))
    assert reasons(untimed)[0].startswith(f"was {MODULE}::test_z [z]: run `")


def test_code_that_got_worse_is_told_with_its_figures(renaming: Run) -> None:
    on_record(renaming, old_key(), static_record(**LAUNCHED))
    worse = _with_figures(registers=40, spill_store_bytes=8, spill_load_bytes=8)
    found = followed(renaming, new(static={"sm_90": worse}))
    assert found.was == old_key()
    head = f"was {MODULE}::test_old [copy], the machine code got worse, "
    assert reasons(found)[0].startswith(head)
    told = reasons(found)[0].removeprefix(head).partition(": run `")[0]
    assert "spill" in told
    assert "registers" not in told  # they moved, and are nothing worse by themselves
    assert ", " in told


@pytest.mark.parametrize(
    ("launch", "told"),
    [({}, "the same machine code"), ({"block": (64, 1, 1)}, "the same machine code in another launch")],
    ids=["not launched", "launched otherwise"],
)
def test_equal_code_is_not_told_as_changed_whatever_its_launch(renaming: Run, launch: dict, told: str) -> None:
    on_record(renaming, old_key(), static_record(**launch))
    found = followed(renaming, new(static={"sm_90": static_record(**LAUNCHED)}))
    assert reasons(found)[0].startswith(f"was {MODULE}::test_old [copy], {told}: run `")


def _with_figures(code: str = "c1", **figures: int) -> StaticRecord:
    record = static_record(code, **LAUNCHED)
    return msgspec.structs.replace(record, profile=msgspec.structs.replace(record.profile, **figures))


def test_code_of_an_architecture_that_the_record_lacks_is_not_compared(renaming: Run) -> None:
    on_record(renaming, old_key(), static_record(**LAUNCHED))
    both = {"sm_90": static_record(**LAUNCHED), "sm_80": static_record(**LAUNCHED)}
    lacking = Judgement(key=key(), target="sm_80", kind="static", verdict=Verdict.NEW, reason="no")
    found = followed(renaming, new(static=both, judgements=(lacking,)))
    assert reasons(found)[0].startswith(f"was {MODULE}::test_old [copy]: run `")


# --- in a run against a revision -------------------------------------------------------------------


@pytest.fixture
def against(renaming: Run) -> Run:
    renaming.worker.revision = Revision(commit="c0", name="c0 (yesterday)", archs=("sm_90",))
    return renaming


def test_against_a_revision_the_origins_evidence_is_compared_with(against: Run) -> None:
    on_record(against, old_key(), static_record(**LAUNCHED), time_of(6640.0, RAN))
    timed = new(kinds=("static", "time", "memory"), time=time_of(6640.0, RAN), identity=RAN)
    found = followed(against, timed)
    assert [one.verdict for one in found.judgements] == [Verdict.UNCHANGED, Verdict.UNCHANGED, Verdict.NEW]
    assert found.was == old_key()
    assert reasons(found) == [
        f"was {MODULE}::test_old [copy], the same machine code",
        f"was {MODULE}::test_old [copy], 0.0 % faster than its record",
        "no",
    ]


def test_there_code_that_got_better_is_settled_and_code_that_got_worse_is_not(against: Run) -> None:
    on_record(against, old_key(), static_record(**LAUNCHED))
    same = followed(against, new(static={"sm_90": static_record("c1", **LAUNCHED)}))
    assert same.judgements[0].verdict is Verdict.SAME
    worse = followed(against, new(static={"sm_90": _with_figures(spill_store_bytes=8)}))
    assert worse.judgements[0].verdict is Verdict.NOT_COMPARABLE
    assert worse.judgements[0].reason.endswith(
        ", which proves nothing of a renamed one: rename it in a change of its own"
    )
    settled = Judgement(key=key(), target=H200, kind="time", verdict=Verdict.SAME, reason="it is")
    kept = followed(against, new(judgements=(*new().judgements, settled)))
    assert kept.judgements[1] == settled


def test_there_what_may_be_any_of_several_that_are_gone_is_not_comparable(against: Run) -> None:
    edited = new(kinds=("static", "memory"), static={"sm_90": static_record("c1", **LAUNCHED)})
    for name in ("test_a", "test_b"):
        on_record(against, old_key(name), static_record(**LAUNCHED))
    found = followed(against, edited)
    assert [one.verdict for one in found.judgements] == [Verdict.NOT_COMPARABLE, Verdict.NEW]
    assert reasons(found)[0].startswith(
        f"it has the kernel of 2 workloads that went, {MODULE}::test_a [copy], {MODULE}::test_b [copy]: "
    )
    other = new(static={"sm_90": static_record("c1", kernel="scale", **LAUNCHED)})
    assert [one.verdict for one in followed(against, other).judgements] == [Verdict.NEW]


def test_there_a_time_of_other_work_is_not_comparable(against: Run) -> None:
    on_record(against, old_key(), static_record(**LAUNCHED), time_of(6640.0, RAN))
    other = Identity(code="c1" * 32, launch=RAN.launch)
    static = {"sm_90": static_record("c1", **LAUNCHED)}
    found = followed(against, new(kinds=("time",), static=static, time=time_of(6640.0, other), identity=other))
    assert [one.verdict for one in found.judgements] == [Verdict.NOT_COMPARABLE]
    without = followed(against, new(kinds=("time",), static=static, time=None, identity=None))
    assert [one.verdict for one in without.judgements] == [Verdict.NOT_COMPARABLE]


def test_there_code_that_one_side_lacks_is_not_comparable(against: Run) -> None:
    on_record(against, old_key(), static_record(**LAUNCHED))
    lacking = Judgement(key=key(), target="sm_80", kind="static", verdict=Verdict.NEW, reason="no")
    found = followed(against, new(judgements=(lacking,)))
    assert [one.verdict for one in found.judgements] == [Verdict.NOT_COMPARABLE]


def test_there_a_callable_may_be_another_one(against: Run) -> None:
    on_record(against, old_key(TEST, "old"), time=time_of(6640.0, RAN))
    timed = new(kinds=("time",), static={}, toolchain="", time=time_of(6640.0, RAN), identity=RAN)
    assert followed(against, timed) == timed
