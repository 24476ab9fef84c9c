"""``gpuperf merge``: what it refuses, in words and by its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_gpuperf.cli.command_line import main
from pytest_gpuperf.judge.vanished import OnRecord, Vanished, WhyVanished
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import SelfPairReading, TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.report.document import SCHEMA, RunReport
from pytest_gpuperf.report.run_part import Missed, RunPart

OF = 2
ALL_TARGETS = ("sm_90", "nvidia-h200")


def key(test: str) -> Key:
    return Key(module="test_it.py", test=test, workload="copy")


def evidence(test: str, verdict: Verdict = Verdict.SAME, **fields: Any) -> TestEvidence:
    judged = Judgement(key=key(test), target="nvidia-h200", kind="time", verdict=verdict)
    work = WorkloadEvidence(key=key(test), judgements=(judged,), counters={"one": 1.0})
    return TestEvidence(module="test_it.py", test=test, workloads=(work,), **fields)


def part(**fields: Any) -> RunPart:
    usual: dict[str, Any] = {
        "plan": "p", "complete": True, "tests_run": 1, "options": {"open": "fail", "without_gpu": "warn"},
        "archs": ("sm_90",), "models": ("nvidia-h200",), "without_gpu": False, "full": True, "root": "/project",
    }  # fmt: skip
    return RunPart(**{**usual, **fields})


def shard(index: int, of: int = OF, *, of_part: RunPart | None = None, **fields: Any) -> RunReport:
    usual: dict[str, Any] = {
        "schema": SCHEMA, "date": "2026-11-22T12:00:00Z", "plugin": "0.1.0", "task": "gpuperf", "exit_status": 0,
        "verdicts": {}, "problems": (), "warnings": (), "tests": (evidence(f"test_{index}"),), "commit": "c0",
    }  # fmt: skip
    return RunReport(**{**usual, "shard": (index, of), "part": of_part or part(), **fields})


@pytest.fixture
def merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def merge(*reports: RunReport, more: tuple[str, ...] = ()) -> tuple[int, str]:
        files = []
        for number, report in enumerate(reports, 1):
            path = tmp_path / f"{number}.json"
            path.write_bytes(msgspec.json.encode(report))
            files.append(str(path))
        status = main(["merge", *files, *more])
        said = capsys.readouterr()
        return status, said.out + said.err

    return merge


def test_two_shards_are_one_run(merged, tmp_path) -> None:
    files = ("--html", f"{tmp_path}/whole.html", "--markdown", f"{tmp_path}/w.md", "--json", f"{tmp_path}/w.json")
    status, said = merged(shard(2), shard(1), more=files)
    assert (status, said.splitlines()[-1]) == (0, "2 shards: 2 SAME (exit status 0)")
    whole = msgspec.json.decode((tmp_path / "w.json").read_bytes(), type=RunReport)
    assert [test.test for test in whole.tests] == ["test_1", "test_2"]
    assert whole.shard is whole.part is None
    assert "2 SAME" in (tmp_path / "w.md").read_text()
    assert "test_2" in (tmp_path / "whole.html").read_text()


def test_shards_of_which_none_has_a_gpu_are_one_run(merged) -> None:
    alike = [part(models=(), without_gpu=True)] * 2
    status, said = merged(*(shard(index, of_part=one) for index, one in enumerate(alike, 1)))
    assert (status, said.splitlines()[-1]) == (0, "2 shards: 2 SAME (exit status 0)")


REFUSED = {
    "missing": ([shard(1)], "the report of 2/2 is missing"),
    "several missing": ([shard(2, 4)], "the report of 1/4, 3/4, 4/4 is missing"),
    "far too many": ([shard(2, 10**12)], f"the report of 1/{10**12}, 3/{10**12}, 4/{10**12}"),
    "and more": ([shard(1, 20)], "8/20, 9/20 and 11 more is missing"),
    "beyond the last": ([shard(1), shard(2), shard(3, 2)], "3.json is of no run: there is no shard 3 of 2"),
    "of none": ([shard(0, 0)], "1.json is of no run: there is no shard 0 of 0"),
    "twice": ([shard(1), shard(1), shard(2)], "are both shard 1: give each shard once"),
    "another number": ([shard(1), shard(2, 3)], "another number of shards"),
    "whole run": ([shard(1, shard=None, part=None), shard(2)], "is the report of a whole run"),
    "unfinished": (
        [shard(1), shard(2, of_part=part(complete=False), exit_status=2)],
        "shard 2 did not come to its end",
    ),
    "commits": ([shard(1), shard(2, commit="c1")], "are of different commits (c0 and c1): check the same commit out"),
    "dirty": (
        [shard(1), shard(2, dirty=True, of_part=part(changes="1a2b"))],
        "are of different changes of tracked files (none and 1a2b): start each from the same clean checkout, and",
    ),
    "other changes": (
        [shard(number, dirty=True, of_part=part(changes=f"c{number}")) for number in (1, 2)],
        "are of different changes of tracked files (c1 and c2)",
    ),
    "plugins": ([shard(1), shard(2, plugin="0.2.0")], "are of different plugin versions (0.1.0 and 0.2.0)"),
    "scopes": (
        [shard(1), shard(2, of_part=part(full=False))],
        "different scopes (all tests and chosen tests): give all",
    ),
    "selections": ([shard(1), shard(2, of_part=part(plan="q"))], "are of different selections of tests: give all"),
    "targets": ([shard(1), shard(2, of_part=part(archs=("sm_80",)))], "different static targets (sm_90 and sm_80)"),
    "models": (
        [shard(1), shard(2, of_part=part(models=("nvidia-a100",)))],
        "are of different GPU models (nvidia-h200 and nvidia-a100)",
    ),
    "several models": (
        [
            shard(1, of_part=part(models=("nvidia-a100", "nvidia-h200"))),
            shard(2, of_part=part(models=("nvidia-h100",))),
        ],
        "are of different GPU models (nvidia-a100, nvidia-h200 and nvidia-h100): run all shards on GPUs of one model",
    ),
    "no targets": ([shard(1), shard(2, of_part=part(archs=()))], "different static targets (sm_90 and )"),
    "no revision": (
        [shard(1, of_part=part(revision="main")), shard(2)],
        "revisions to compare with (main and none): name a commit",
    ),
    "no GPU": ([shard(1), shard(2, of_part=part(models=(), without_gpu=True))], "of a machine without a usable GPU"),
    "options": (
        [shard(1), shard(2, of_part=part(options={"open": "warn", "without_gpu": "warn"}))],
        "differ in the option open (fail and warn): give all shards the same options",
    ),
    "revisions": ([shard(1), shard(2, of_part=part(revision="main"))], "are of different revisions to compare with"),
    "schema": ([shard(1), shard(2, schema=SCHEMA - 1)], f"has schema {SCHEMA - 1}, this version reads {SCHEMA}"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_leave_a_hole_is_refused(merged, what) -> None:
    reports, words = REFUSED[what]
    status, said = merged(*reports)
    assert status == 2
    assert said.startswith("gpuperf merge: ")
    assert words in said


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("foo", 1, "there is no option foo"), ("enabled", True, "there is no option enabled"),
        ("profile", "x", "the option profile does not take x"), ("profile", None, "the option profile does not take"),
        ("tolerance", "0.1", "the option tolerance does not take 0.1"), ("ncu", 3, "the option ncu does not take 3"),
        ("open", "maybe", "the option open does not take maybe"), ("baselines", 3, "the option baselines does not"),
    ],
)  # fmt: skip
def test_an_option_that_this_version_does_not_know_is_refused(merged, tmp_path, field, value, words) -> None:
    of = part(options={field: value})
    status, said = merged(shard(1, of_part=of), shard(2, of_part=of))
    assert status == 2
    assert said.startswith(f"gpuperf merge: {tmp_path}/1.json: {words}")
    assert said.endswith("merge by the version that the shards ran, 0.1.0\n")


def test_a_report_of_impossible_figures_is_none(merged, tmp_path, capsys) -> None:
    merged(shard(1), shard(2))
    report = json.loads((tmp_path / "1.json").read_text())
    judged = {"time": {"method": "paired", "log_e": 1e9, "log_e_needed": 5.0, "blocks": 9}}
    key = {"module": "t.py", "test": "t", "workload": "w"}
    judgement = {"key": key, "target": "g", "kind": "time", "verdict": "SLOWER", **judged}
    report["tests"] = [{"module": "t.py", "test": "t", "workloads": [{"key": key, "judgements": [judgement]}]}]
    (tmp_path / "1.json").write_text(json.dumps(report))
    assert main(["merge", str(tmp_path / "1.json"), str(tmp_path / "2.json")]) == 2
    assert "1.json is no report of a run (math range error)" in capsys.readouterr().err


def test_a_file_that_is_no_report(merged, tmp_path, capsys) -> None:
    (tmp_path / "no.json").write_text("{}")
    assert main(["merge", str(tmp_path / "no.json")]) == 2
    assert "is no report of a run" in capsys.readouterr().err
    status, said = merged(shard(1), shard(2), more=("--html", f"{tmp_path}/page.md"))
    assert status == 2
    assert "does not end in .html" in said


def vanished(cause: WhyVanished, target: str, **fields: Any) -> RunPart:
    gone = Vanished(OnRecord(key("gone"), target, "time"), cause, **fields)
    return part(models=(), missed=Missed(candidates=(gone,)))


@pytest.mark.parametrize(("index", "other"), [(1, 2), (2, 1)])
def test_a_record_counts_for_the_gpu_that_only_another_shard_saw(merged, index, other) -> None:
    """Alone, that shard had no GPU, so that it could not tell."""
    skipped = vanished(WhyVanished.SKIPPED, "nvidia-h200", reason="needs a GPU", needs_gpu=True)
    status, said = merged(shard(index, of_part=skipped), shard(other))
    assert status == 13
    assert "ERROR: 1 workload on record NOT-MEASURED on nvidia-h200: its test or its test file was skipped" in said
    status, _ = merged(shard(index, of_part=skipped), shard(other, of_part=part(models=())))
    assert status == 0


def test_one_line_for_what_several_shards_missed(merged) -> None:
    deleted = [vanished(WhyVanished.DELETED, target) for target in ALL_TARGETS]
    status, said = merged(*(shard(index, of_part=one) for index, one in enumerate(deleted, 1)))
    assert status == 13
    assert "ERROR: 1 workload on record NOT-MEASURED on nvidia-h200, sm_90: its test is gone" in said


def test_a_narrowed_run_only_names_what_vanished(merged) -> None:
    gone = msgspec.structs.replace(vanished(WhyVanished.DELETED, "sm_90"), full=False)
    status, said = merged(shard(1, of_part=gone), shard(2, of_part=part(full=False)))
    assert status == 0
    assert "1 workload on record NOT-MEASURED" in said


ALARM = SelfPairReading(workload="copy", ratio=1.1, blocks=8, log_e_slower=9.0, log_e_faster=-3.0, seed=1)
RED = part(failures={"test_it.py::test_1": "SLOWER"})


def test_a_red_shard_is_a_red_run(merged) -> None:
    status, said = merged(shard(1, of_part=RED, exit_status=1), shard(2))
    assert status == 1
    assert "FAILED test_it.py::test_1 - SLOWER" in said


def test_a_launch_that_differed_from_itself_warns(merged) -> None:
    status, said = merged(shard(1), shard(2, tests=(evidence("test_2", self_pair=ALARM),)))
    assert status == 0
    assert "A/A test: test_it.py::test_2 [copy] differs from itself, x1.100" in said


def test_foreign_statuses(merged) -> None:
    assert merged(shard(1, exit_status=1), shard(2))[0] == 1  # another plugin failed it
    assert merged(shard(1, exit_status=3), shard(2))[0] == 3


def test_shards_that_gathered_nothing_fail_together_and_not_beside_one_that_did(merged) -> None:
    assert merged(shard(1, tests=(), exit_status=0), shard(2))[0] == 0
    status, said = merged(*(shard(index, tests=(), of_part=part(models=())) for index in (1, 2)))
    assert status == 10
    assert "nothing was measured: 2 tests ran and none used cuda_kernel or gpuperf" in said


def test_what_several_shards_missed_is_told_in_the_order_of_one_run(merged) -> None:
    """Machine code before times, whatever the names of their targets."""
    gone = [
        Vanished(OnRecord(key(test), target, kind), WhyVanished.DELETED)
        for test, target, kind in (("b", "nvidia-h200", "time"), ("a", "sm_90", "static"), ("c", "a-gpu", "time"))
    ]
    parts = [part(missed=Missed(candidates=tuple(some))) for some in (gone[:1], gone[1:])]
    _, said = merged(*(shard(index, of_part=one) for index, one in enumerate(parts, 1)))
    assert "3 workloads on record NOT-MEASURED on sm_90, a-gpu, nvidia-h200: " in said


def test_the_commit_branch_and_latest_date_of_the_shards_are_the_runs(merged, tmp_path) -> None:
    one, two = (
        shard(index, dirty=True, branch="topic", date=f"2026-11-22T1{index}:00:00Z", machines=("a", f"m{index}"))
        for index in (1, 2)
    )
    merged(two, one, more=("--json", f"{tmp_path}/w.json"))
    whole = msgspec.json.decode((tmp_path / "w.json").read_bytes(), type=RunReport)
    assert (whole.commit, whole.dirty, whole.branch) == ("c0", True, "topic")
    assert (whole.date, whole.machines, whole.plugin) == ("2026-11-22T12:00:00Z", ("a", "m1", "m2"), "0.1.0")


def test_a_target_without_a_folder_is_told_once_and_what_no_shard_could_read_too(merged) -> None:
    gone = Missed(targets_gone=("sm_90",))
    status, said = merged(*(shard(index, of_part=part(missed=gone)) for index in (1, 2)))
    assert (status, said.count("there are no baselines of sm_90, NOT-MEASURED: /project/")) == (13, 1)
    unread = Missed(unreadable="what no test came to cannot be told: it is a link")
    status, said = merged(shard(1), shard(2, of_part=part(missed=unread)))
    assert (status, "ERROR: what no test came to cannot be told: it is a link" in said) == (13, True)
    nothing = Missed(nothing_on_record="there are no baselines in /project/baselines")
    for index in (1, 2):
        status, said = merged(shard(index, of_part=part(missed=nothing)), shard(3 - index))
        assert (status, said.count("there are no baselines in /project/baselines")) == (0, 1)
    elsewhere = Missed(elsewhere="nothing was compared: those of a.py are in /project/baselines")
    status, said = merged(shard(1, of_part=part(missed=elsewhere)), shard(2, of_part=part(missed=elsewhere)))
    assert (status, said.count(f"ERROR: {elsewhere.elsewhere}")) == (13, 1)


def test_only_in_the_revision_is_told_by_its_name(merged) -> None:
    gone = Missed(candidates=(Vanished(OnRecord(key("gone"), "sm_90", "static"), WhyVanished.DELETED),))
    of = part(revision="c0 (yesterday)", missed=gone)
    status, said = merged(shard(1, of_part=of), shard(2, of_part=of))
    assert (status, "GONE, only in c0 (yesterday): test_it.py::gone" in said) == (0, True)


def test_sizes_that_differ_are_all_named(merged, tmp_path) -> None:
    _, said = merged(shard(1), shard(2, 3))
    files = [f"{tmp_path}/{number}.json" for number in (1, 2)]
    assert f"another number of shards: {files[0]} is of 2, {files[1]} is of 3: give those of one run" in said
