"""Targets and folders on record that a run does not see, and what the policy makes of what it missed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from missed_samples import NODE, OLD_NODE, OLD_TEST, add_time, old_key, told
from run_samples import COMPILER, H200, MODULE, TEST, Run, static_record, workload

from pytest_gpuperf.baselines.baseline_errors import unreadable
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.judge.vanished import Ended, OnRecord, Vanished, WhyVanished
from pytest_gpuperf.model.result import Outcome, TestEvidence
from pytest_gpuperf.model.revision import Revision
from pytest_gpuperf.session import missed_records


def test_a_target_of_the_manifest_without_a_folder_fails_the_run_once(gated: Run) -> None:
    gated.collected(TEST, OLD_TEST).ends.update({NODE: Ended("passed"), OLD_NODE: Ended("failed")})
    add_time(gated, old_key())
    shutil.rmtree(gated.options.baselines / H200.slug)
    gone = f"there are no baselines of {H200.slug}, NOT-MEASURED: "
    assert told(gated).vanished[0].startswith(gone)
    assert told(gated.with_options(open="warn")).left_out[0].startswith(gone)
    gated.with_options(open="fail")
    assert told(gated.with_options(shard=(2, 2))) == Outcome()
    assert told(gated.with_options(shard=None, archs=("sm_90",))) == Outcome()
    (gated.options.baselines / "manifest.json").unlink()
    gated.with_options(archs=())
    words = "what no test came to cannot be told: "
    assert told(gated).vanished[0].startswith(words)
    assert "it is missing, and it says which targets are gated" in told(gated).vanished[0]
    assert told(gated.with_options(open="warn")).left_out[0].startswith(words)


def test_architectures_that_a_strict_run_leaves_out_are_named(gated: Run) -> None:
    gated.collected(TEST, OLD_TEST).ends.update({NODE: Ended("passed"), OLD_NODE: Ended("failed")})
    assert told(gated.with_options(archs=("sm_80",))).left_out == (
        "not gated: the machine code for sm_90, which is on record and --gpuperf-arch leaves out",
    )
    assert told(gated.with_options(archs=("sm_80", "sm_90"))) == Outcome()
    assert told(gated.with_options(archs=("sm_80",), open="warn")) == Outcome()
    gated.worker.revision = Revision(commit="c0", name="c0", archs=("sm_90",))
    assert told(gated.with_options(open="fail", against="main")) == Outcome()


GATHERED = TestEvidence(module=MODULE, test=TEST, workloads=(workload("copy", static={"sm_90": static_record()}),))


def test_without_any_baseline_those_nearby_are_named(run: Run) -> None:
    folder, root = run.options.baselines, run.config.rootpath
    run.with_options(baselines=root / "none").collected(TEST).ends[NODE] = Ended("passed")
    assert told(run) == Outcome()  # nothing was gathered that could have been on record
    alone = f"there are no baselines in {root / 'none'} (rootdir {root})"
    run.worker.store = type(run.store)(run.options.baselines)
    assert told(run, GATHERED).left_out == (
        f"{alone}: if there should be, --rootdir or --gpuperf-baselines names their folder",
    )
    for place in (root / "below" / "baselines", root.parent / "baselines", root / "empty" / "baselines"):
        place.mkdir(parents=True, exist_ok=True)
    for place in (root / "below" / "baselines", root.parent / "baselines"):
        type(run.store)(place).write(Update(static={("sm_90", COMPILER, old_key()): static_record()}))
    nearby = f"{alone}; there are some in {root.parent / 'baselines'}, {root / 'below' / 'baselines'}. To do: "
    assert told(run, GATHERED).left_out[0].startswith(nearby)
    shutil.rmtree(root.parent / "baselines")
    assert not folder.exists()
    assert told(run.with_options(update="all"), GATHERED) == Outcome()
    assert told(run.with_options(update=None, against="main"), GATHERED) == Outcome()


def test_a_folder_nearby_that_may_not_be_entered_is_none_with_baselines(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = run.config.rootpath
    (root / "locked").mkdir()
    run.with_options(baselines=root / "none").collected(TEST).ends[NODE] = Ended("passed")
    run.worker.store = type(run.store)(run.options.baselines)
    usual = Path.is_file

    def is_file(path: Path) -> bool:
        if path.parent.name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return usual(path)

    monkeypatch.setattr(Path, "is_file", is_file)
    assert told(run, GATHERED).left_out[0].startswith(f"there are no baselines in {root / 'none'} (rootdir {root})")


def test_a_folder_that_cannot_be_read_has_no_architectures_of_its_own(run: Run, tmp_path: Path) -> None:
    class Worker:
        @property
        def expected_archs(self) -> tuple[str, ...]:
            raise unreadable(tmp_path, "it is a link")

    assert missed_records.archs_of(Worker()) == ()  # type: ignore[arg-type]
    assert missed_records.archs_of(run.worker) == ("sm_90",)


def test_what_the_policy_fails_is_red_unless_a_project_may_have_settled_on_it(run: Run) -> None:
    record = OnRecord(old_key(), "sm_90", "static")
    strict = run.with_options(open="fail", without_gpu="warn").options
    red = {cause for cause in WhyVanished if missed_records.fails(Vanished(record, cause), strict)}
    assert red == set(WhyVanished) - {WhyVanished.ELSEWHERE, WhyVanished.DESELECTED}
    skip = Vanished(record, WhyVanished.SKIPPED, for_want_of_gpu=True)
    assert not missed_records.fails(skip, strict)
    assert missed_records.fails(skip, run.with_options(without_gpu="fail").options)


def test_a_folder_nearby_that_cannot_be_read_is_not_named(run: Run) -> None:
    root = run.config.rootpath
    (root / "real").mkdir()
    (root / "below").mkdir()
    (root / "below" / "baselines").symlink_to(root / "real")
    run.with_options(baselines=root / "none").collected(TEST).ends[NODE] = Ended("passed")
    (told_of,) = told(run, GATHERED).left_out
    assert "; there are some in" not in told_of
