"""Kernels of fixtures that tests share: who answers for them, and what a time that measures them decides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from baseline_samples import make_session
from record_samples import identity_of, time_of
from run_samples import COMPILER, H200, MODULE, TEST, Run, key, static_record, workload

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.session import shared_kernels

FIXTURE = "shared"


class Shared:
    """A fixture's kernels, as ``SharedFixture`` keeps them."""

    def __init__(self, problem: BaseException | None = None) -> None:
        self.book = TestBook(MODULE, FIXTURE)
        self.problem = problem
        self.judged = False
        self.first_user = ""


class Judging:
    """A test that uses fixtures; what is judged is noted, and ends with ``unreadable``."""

    def __init__(self, run: Run) -> None:
        self.run, self.item = run, run.item()
        self.item.get_closest_marker = lambda name: None
        self.book = TestBook(MODULE, TEST)
        self.judged: list[tuple[TestBook, bool, bool]] = []
        self.unreadable = ""
        self.shared: list[Any] = []
        run.config.stash[stash.SHARED] = SimpleNamespace(used_by=lambda item: self.shared)  # type: ignore[assignment]

    def judge_book(self, config: Any, worker: Any, book: TestBook, *, stopped: bool, whole: bool) -> str:
        assert (config, worker) == (self.run.config, self.run.worker)
        self.judged.append((book, stopped, whole))
        return self.unreadable

    def told(self, *shared: Any, failed_itself: bool = False, stops: bool = False) -> str:
        self.shared = list(shared)

        def stops_early(item: Any, problem: BaseException) -> bool:
            assert item is self.item
            return stops and isinstance(problem, LookupError)

        return shared_kernels.judge(self.item, self.run.worker, self.book, stops_early, failed_itself=failed_itself)


@pytest.fixture
def judging(run: Run, monkeypatch: pytest.MonkeyPatch) -> Judging:
    made = Judging(run)
    monkeypatch.setattr(shared_kernels, "judge_book", made.judge_book)
    return made


def test_the_first_user_answers_for_them_and_they_are_judged_once(judging: Judging) -> None:
    one = Shared()
    assert judging.told(one) == ""
    assert judging.judged == [(one.book, False, True)]
    assert (one.first_user, one.judged, judging.book.answers_for) == (judging.item.nodeid, True, (one.book,))
    judging.told(one)  # the same test again
    assert (len(judging.judged), judging.book.answers_for) == (1, (one.book,))
    others = Shared()
    others.first_user = "another test"
    judging.told(others)
    assert (len(judging.judged), judging.book.answers_for) == (1, ())


@pytest.mark.parametrize("why", ["it fails itself", "a mark of the gate", "a mark of pytest"])
def test_a_test_that_fails_or_is_to_fail_answers_for_itself_alone(judging: Judging, why: str) -> None:
    if why == "a mark of the gate":
        judging.item._marker = {"xfail": "known"}
    elif why == "a mark of pytest":
        judging.item.get_closest_marker = lambda name: object() if name == "xfail" else None
    one = Shared()
    judging.told(one, failed_itself=why == "it fails itself")
    assert (one.first_user, one.judged, judging.book.answers_for) == ("", True, (one.book,))


def test_the_first_problem_with_a_baseline_is_told(judging: Judging) -> None:
    judging.unreadable = "it is a link"
    assert judging.told(Shared(), Shared()) == "it is a link"
    assert len(judging.judged) == 2
    assert judging.told() == ""


def test_a_fixture_that_stopped_early_has_not_all_there_is(judging: Judging, run: Run) -> None:
    judging.run.worker.no_device = None
    one = Shared(LookupError("no GPU\nand more words"))
    judging.told(one, stops=True)
    assert judging.judged == [(one.book, True, False)]
    assert (one.book.status, one.book.reason, one.book.whole) == ("static only", "no GPU", False)
    judging.run.worker.no_device = "no driver\nand more words"
    two = Shared(LookupError("no GPU"))
    judging.told(two, stops=True)
    assert two.book.reason == "no driver"
    failed = Shared(ValueError("it failed"))
    judging.told(failed, stops=True)
    assert judging.judged[-1] == (failed.book, False, False)
    assert (failed.book.status, failed.book.whole) == ("complete", False)


def test_a_fixture_is_whole_in_a_gated_run_with_a_gpu(judging: Judging) -> None:
    found = []
    for enabled, has_gpu in ((True, True), (False, True), (True, False)):
        judging.run.with_options(enabled=enabled)
        judging.run.worker.has_gpu = has_gpu
        judging.told(one := Shared())
        found.append(one.book.whole)
    assert found == [True, False, False]


# --- worse code that a time outranks ---------------------------------------------------------------

OLD = static_record("a0")
WORSE = Judgement(key=key("copy", FIXTURE), target="sm_90", kind="static", verdict=Verdict.WORSE, reason="it spills")


@pytest.fixture
def worse(judging: Judging) -> Judging:
    """The kernel on record is also timed by a test; another's code has a time before that."""
    code = OLD.profile.code_hash
    times = {
        (H200.slug, key("a", "test_a")): time_of(identity=identity_of(code="b0" * 32)),
        (H200.slug, key("b", "test_b")): time_of(identity=identity_of(code=code)),
    }
    static = {("sm_90", COMPILER, key("copy", FIXTURE)): OLD}
    judging.run.store.write(Update(static=static, time=times, sessions=[make_session(id="s1")]))
    judging.run.collected("test_a", "test_b")
    return judging


def judged(judging: Judging, *judgements: Judgement) -> tuple[Judgement, ...]:
    one = Shared()
    one.book.add(workload("copy", *judgements, toolchain=COMPILER))
    first = one.book.workloads["copy"]
    one.book.workloads = {"copy": msgspec.structs.replace(first, key=key("copy", FIXTURE))}
    assert judging.told(one) == ""
    return one.book.workloads["copy"].judgements


def test_a_time_of_its_code_decides_over_worse_code(worse: Judging) -> None:
    time = Judgement(key=WORSE.key, target="sm_80", kind="static", verdict=Verdict.WORSE, reason="it spills")
    found = judged(worse, WORSE, time)
    assert found[1] == time  # of another GPU's code this one has no time
    assert found[0].verdict is Verdict.SAME
    measured = f"{MODULE}::test_b [b]"
    assert found[0].reason == f"worse by its machine code: it spills; its time decides, which {measured} measures"


@pytest.mark.parametrize(
    "why", ["nobody times it", "that test is gone", "nothing is known", "no GPU", "no times", "not its GPU", "better"]
)
def test_else_worse_code_stays_worse(worse: Judging, why: str) -> None:
    run, one = worse.run, WORSE
    if why == "nobody times it":
        run.worker.store.write(Update(static={("sm_90", COMPILER, WORSE.key): static_record("d0")}))
    elif why == "that test is gone":
        run.collected("test_a")
    elif why == "nothing is known":
        del run.config.stash[stash.FINDING]
    elif why == "no GPU":
        run.worker.has_gpu = False
    elif why == "no times":
        run.with_options(enabled=False, ncu=("full",))
    elif why == "not its GPU":
        run.worker.native_arch = None
    else:
        one = Judgement(key=WORSE.key, target="sm_90", kind="static", verdict=Verdict.BETTER, reason="fewer")
    assert judged(worse, one) == (one,)


def test_a_kernel_without_a_record_stays_as_it_is_and_so_does_one_of_an_unfinished_collection(worse: Judging) -> None:
    worse.run.config.stash[stash.FINDING].found = None
    assert judged(worse, WORSE) == (WORSE,)
    worse.run.collected("test_a", "test_b")
    found = Shared()
    found.book.add(workload("copy", WORSE, toolchain="nvrtc 12.9.86"))
    worse.told(found)
    assert found.book.workloads["copy"].judgements == (WORSE,)


def test_a_baseline_that_cannot_be_read_is_told(worse: Judging, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object) -> None:
        raise BaselineError("it is a link")

    monkeypatch.setattr(worse.run.store, "static", unreadable)
    one = Shared()
    one.book.add(workload("copy", WORSE, toolchain=COMPILER))
    assert worse.told(one) == "it is a link"
