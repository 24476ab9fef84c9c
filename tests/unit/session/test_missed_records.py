"""What is on record and no test came to: when a run answers for it, and which records count."""

from __future__ import annotations

from typing import Any

import pytest
from missed_samples import NODE, OLD_NODE, OLD_TEST, add_time, old_key, told
from run_samples import H200, MODULE, TEST, Run, workload

from pytest_gpuperf.context import stash
from pytest_gpuperf.context.shard_plan import Shard
from pytest_gpuperf.judge.vanished import Ended, OnRecord
from pytest_gpuperf.model.result import Outcome, TestEvidence
from pytest_gpuperf.model.revision import Revision
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.session import missed_records
from pytest_gpuperf.session.missed_records import MISSED, NO_WORKER, on_record

INTERRUPTED = pytest.ExitCode.INTERRUPTED


def line(cause: str, targets: str = "sm_90", name: str = OLD_NODE) -> str:
    return f"1 workload on record NOT-MEASURED on {targets}: {cause}: {name}"


DELETED = line("its test is gone")
SKIPPED = "its test or its test file was skipped, or failed as expected"


# --- which runs answer for it ----------------------------------------------------------------------


def test_a_full_run_that_came_to_its_end_fails_for_a_deleted_test(gated: Run) -> None:
    outcome = told(gated)
    assert [one.partition(". To do")[0] for one in outcome.vanished] == [DELETED]
    assert outcome.left_out == ()
    assert [one.record for one in gated.config.stash[MISSED].candidates] == [OnRecord(old_key(), "sm_90", "static")]


def test_a_run_that_gates_nothing_or_was_interrupted_or_found_nothing_out_says_nothing(gated: Run) -> None:
    assert told(gated, status=INTERRUPTED) == Outcome()
    enabled = gated.options
    gated.with_options(enabled=False)
    assert told(gated) == Outcome()
    gated.options = gated.config.stash[stash.OPTIONS] = enabled
    assert told(gated).vanished
    del gated.config.stash[stash.FINDING]
    assert told(gated) == Outcome()


def test_without_a_word_from_any_worker_a_strict_run_that_ran_tests_fails(gated: Run) -> None:
    gated.config.stash[stash.FINDING].found = None
    assert told(gated).vanished == (NO_WORKER,)
    assert told(gated, tests_run=0).vanished == ()
    gated.with_options(open="warn")
    assert told(gated).vanished == ()


def test_after_last_failed_nothing_can_be_told(gated: Run) -> None:
    gated.collected(TEST, partial=True).ends[NODE] = Ended("passed")
    assert told(gated) == Outcome()


@pytest.mark.parametrize("why", ["it is narrowed", "it was cut short", "it is an update"])
def test_other_runs_only_name_it(gated: Run, why: str) -> None:
    if why == "it is narrowed":
        gated.config.option.keyword = "copy"
    elif why == "it was cut short":
        gated.config.stash[stash.FINDING].ends.clear()
    else:
        gated.with_options(update="all")
    outcome = told(gated, status=1)
    assert outcome.vanished == ()
    assert [one.partition(". To do")[0] for one in outcome.left_out] == [DELETED]


def test_a_comparison_with_a_revision_may_be_narrowed_and_names_what_only_that_has(gated: Run) -> None:
    gated.with_options(against="main", baselines=gated.options.baselines)
    gated.worker.revision = Revision(commit="c0", name="c0 (yesterday)", archs=("sm_90",))
    outcome = told(gated)
    assert outcome.vanished == ()
    assert outcome.left_out == (f"GONE, only in c0 (yesterday): {OLD_NODE}",)
    gated.config.option.keyword = "copy"
    assert missed_records.is_full(gated.config)
    gated.collected(TEST, OLD_TEST).ends.update({NODE: Ended("passed"), OLD_NODE: Ended("skipped", "flaky")})
    assert told(gated).vanished[0].startswith(line(SKIPPED, name=f"{OLD_NODE} (flaky)"))


# --- tests that did not come to an end -------------------------------------------------------------


def test_a_green_run_names_the_tests_that_did_not_come_to_an_end(gated: Run) -> None:
    gated.collected(TEST, OLD_TEST).ends[NODE] = Ended("passed")
    words = (
        f"1 of 2 tests did not come to an end, and what did not run is not proven: {OLD_NODE}. To do: see to what "
        "ended the run, such as pytest.exit(..., returncode=0), and run it again"
    )
    assert told(gated).vanished == (words,)
    assert told(gated, status=1) == Outcome()
    gated.with_options(open="warn")
    assert told(gated) == Outcome(left_out=(words,))
    gated.with_options(open="fail", update="all")
    assert told(gated) == Outcome(left_out=(words,))
    gated.with_options(update=None)
    gated.config.stash[stash.FINDING].ends.clear()
    one_of_them = f"2 of 2 tests did not come to an end, and what did not run is not proven: {NODE} and 1 more. To do"
    assert told(gated).vanished[0].startswith(one_of_them)


def test_it_is_known_that_all_have_ended_where_it_is_known_what_was_chosen(gated: Run) -> None:
    assert missed_records.came_to_end(gated.config)
    gated.config.stash[stash.FINDING].ends[OLD_NODE] = Ended("passed")
    assert missed_records.came_to_end(gated.config)
    gated.config.stash[stash.FINDING].found = None
    assert not missed_records.came_to_end(gated.config)


# --- which records count ---------------------------------------------------------------------------


def test_everything_on_record_is_asked_about_by_target(gated: Run) -> None:
    add_time(gated, old_key("test_b"))
    assert list(on_record(gated.store)) == [
        OnRecord(old_key(), "sm_90", "static"), OnRecord(old_key("test_b"), H200.slug, "time")
    ]  # fmt: skip


def skipped(run: Run, reason: str, **found: Any) -> None:
    run.collected(TEST, OLD_TEST, **found).ends.update({NODE: Ended("passed"), OLD_NODE: Ended("skipped", reason)})


def test_a_skipped_test_counts_for_the_targets_of_the_run(gated: Run) -> None:
    add_time(gated, old_key())
    skipped(gated, "flaky")
    cause, name = SKIPPED, f"{OLD_NODE} (flaky)"
    assert told(gated).vanished[0].startswith(line(cause, name=name))
    gated.worker.expected_archs = ("sm_80",)
    assert told(gated).vanished == ()
    skipped(gated, "flaky", models=frozenset({H200.slug}))
    assert told(gated).vanished[0].startswith(line(cause, H200.slug, name))
    skipped(gated, "flaky")
    seen = TestEvidence(module=MODULE, test=TEST, device=H200)
    assert told(gated, seen).vanished[0].startswith(line(cause, H200.slug, name))


def test_a_skip_for_want_of_a_gpu_is_one_only_where_there_is_none(gated: Run) -> None:
    skipped(gated, "no GPU")
    assert told(gated).vanished == ()
    assert "its test needs a GPU and is skipped" in told(gated).left_out[0]
    gated.with_options(require_gpu=True)
    assert "its test or its test file was skipped" in told(gated).vanished[0]
    gated.with_options(require_gpu=False)
    skipped(gated, "no GPU", models=frozenset({H200.slug}))
    assert "its test or its test file was skipped" in told(gated).vanished[0]


def test_what_a_test_reached_before_its_skip_and_what_a_stopped_test_tells_itself_do_not_count(gated: Run) -> None:
    skipped(gated, "the rest is slow")
    one = Judgement(key=old_key(), target="sm_90", kind="static", verdict=Verdict.SAME)
    came = TestEvidence(module=MODULE, test=OLD_TEST, workloads=(workload("copy", one),))
    assert told(gated, came) == Outcome()
    skipped(gated, "the rest is slow")
    stopped = TestEvidence(module=MODULE, test=OLD_TEST, status="static only")
    assert told(gated, stopped) == Outcome()


def test_a_module_without_a_file_is_gone_and_one_beyond_the_search_is_elsewhere(gated: Run) -> None:
    gated.collected(TEST, modules=frozenset()).ends[NODE] = Ended("passed")
    assert told(gated).vanished[0].startswith(line("its test file is there and was not collected", name=MODULE))
    (gated.config.rootpath / MODULE).unlink()
    assert told(gated).vanished[0].startswith(line("its test file is gone", name=f"{MODULE} (rootdir "))
    gated.collected(TEST, modules=frozenset()).ends[NODE] = Ended("passed")
    gated.searched("other")
    assert told(gated) == Outcome()
    gated.config.args_source = pytest.Config.ArgsSource.TESTPATHS
    elsewhere = told(gated)
    assert elsewhere.vanished == ()  # a project may gate it in a run of its own
    assert elsewhere.left_out[0].startswith(line("its test file lies outside of the folders that this run searched",
                                                 name=MODULE))  # fmt: skip


def test_a_file_that_could_not_be_collected_or_skipped_itself_says_so_itself(gated: Run) -> None:
    gated.collected(TEST, failed=frozenset({MODULE})).ends[NODE] = Ended("passed")
    assert told(gated) == Outcome()
    gated.collected(TEST, skipped={MODULE: "old"}).ends[NODE] = Ended("passed")
    assert "(old)" in told(gated).vanished[0]


def test_a_test_that_was_left_out_is_told_unless_another_shard_has_it(gated: Run) -> None:
    both = frozenset({NODE, OLD_NODE})
    gated.collected(TEST, tests=both).ends[NODE] = Ended("passed")
    outcome = told(gated)
    assert (outcome.vanished, "and then left out" in outcome.left_out[0]) == ((), True)
    gated.collected(TEST, tests=both, elsewhere=frozenset({OLD_NODE})).ends[NODE] = Ended("passed")
    assert told(gated) == Outcome()


def test_a_record_that_a_renamed_workload_continues_is_told_with_it(gated: Run) -> None:
    went_on = TestEvidence(module=MODULE, test=TEST, workloads=(workload("copy", was=old_key()),))
    assert told(gated, went_on).vanished[0].startswith(line("its work goes on under another name"))
    gated.with_options(against="main")
    gated.worker.revision = Revision(commit="c0", name="c0", archs=("sm_90",))
    assert told(gated, went_on) == Outcome()


def test_a_shard_answers_for_its_part_and_for_the_tests_that_it_runs(gated: Run) -> None:
    mine = next(index for index in (1, 2) if Shard(index, 2).answers_for(OLD_NODE))
    assert told(gated.with_options(shard=(mine, 2))).vanished
    assert told(gated.with_options(shard=(3 - mine, 2))) == Outcome()
    gated.collected(TEST, OLD_TEST).ends.update({NODE: Ended("passed"), OLD_NODE: Ended("skipped", "flaky")})
    assert told(gated).vanished
