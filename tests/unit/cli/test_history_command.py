"""``gpuperf history``: which commits count, what they have on record, and where it took a step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from baseline_samples import CUBIN, H200, NVRTC, make_key, make_session, make_static, make_time, static_update
from git_samples import commit, git
from record_samples import static_of, time_of

from pytest_gpuperf.baselines.git_objects import GitFolder
from pytest_gpuperf.baselines.store import BaselineStore, Update
from pytest_gpuperf.cli.command_line import main
from pytest_gpuperf.cli.history_command import commits_of, series_of
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.time_record import Session

KEY = Key(module="tests/test_scale.py", test="test_scale[=1+1]", workload="scale")
QUIET = Key(module="tests/test_quiet.py", test="test_quiet", workload="<b>quiet</b>")
SESSION = Session(
    id="s1", date="2026-11-01T10:00:00Z", gpu="NVIDIA H200", uuid="GPU-1", driver="580",
    toolchain="nvrtc 13.0.88", timer="cupti", tick_ns=32.0, overhead_ns=0.0,
)  # fmt: skip
COMMITS = 30
PLANTED = 17


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """30 commits that each record a time anew, with a scatter of 0.3 %; one is 3 % slower and takes two registers."""
    root = tmp_path_factory.mktemp("history")
    draw = np.random.default_rng(5)
    names = []
    for number in range(COMMITS):
        after = number >= PLANTED
        times = {
            ("nvidia-h200", key): time_of(50_000 * float(np.exp(draw.normal(0, 0.003))) * slower, sessions=(SESSION,))
            for key, slower in ((KEY, 1.03 if after else 1.0), (QUIET, 1.0))
        }
        static = {("sm_90", "nvrtc 13.0.88", KEY): static_of(registers=42 if after else 40)}
        BaselineStore(root / "baselines").write(Update(static=static, time=times))
        names.append(commit(root, f"state {number}"))
    return root, names


def test_a_planted_step_is_found_at_its_commit(history, monkeypatch, capsys):
    root, names = history
    monkeypatch.chdir(root)
    assert main(["history"]) == 0
    out = capsys.readouterr().out.splitlines()
    (time,) = [place for place, line in enumerate(out) if line.startswith(f"{KEY} time on nvidia-h200: ")]
    assert f"{COMMITS} commits" in out[time]
    assert out[time + 1].startswith(f"    +2.7 % at {names[PLANTED][:12]} (2")
    assert out[time + 1].endswith(f", state {PLANTED})")
    (registers,) = [place for place, line in enumerate(out) if " registers on sm_90, nvrtc 13.0.88: 40 -> 42" in line]
    assert "2 commits" in out[registers]  # a record that stays is no new point
    assert f"+5.0 % at {names[PLANTED][:12]}" in out[registers + 1]
    assert sum(" at " in line for line in out) == 2  # and nothing of the quiet one


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no_such_test.py"], "there is no baseline of no_such_test.py"),
        (["--baselines", "nowhere"], "there is no folder nowhere"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_says_why(history, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(history[0])
    assert main(["history", *arguments]) == 1
    assert says in capsys.readouterr().err


# --- which commits count ---------------------------------------------------------------------------

FIRST, SECOND = make_key(module="suite/test_a.py"), make_key(module="suite/test_b.py")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two modules with static evidence and times, committed."""
    root = tmp_path / "baselines"
    static = {("sm_90", NVRTC, key): make_static() for key in (FIRST, SECOND)}
    time = {(H200, key): make_time(make_session()) for key in (FIRST, SECOND)}
    BaselineStore(root).write(Update(static=static, time=time, cubins=[CUBIN]))
    commit(tmp_path)
    return root


def test_commits_that_touched_the_folder_come_the_oldest_first(root: Path) -> None:
    (root.parent / "other.py").touch()
    commit(root.parent, "elsewhere")
    BaselineStore(root).write(static_update(make_static(40), FIRST))
    second = commit(root.parent, 'Caf\u00e9 "quoted"')
    found = commits_of(root)
    assert [one.subject for one in found] == ["state", 'Caf\u00e9 "quoted"']
    assert (found[1].name, found[0].date) == (second, git(root, "show", "-s", "--format=%cI", found[0].name))


def test_a_merge_stands_for_its_branch(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "side")
    for registers in (40, 48):
        BaselineStore(root).write(static_update(make_static(registers), FIRST))
        commit(root.parent)
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "--no-ff", "-m", "merged", "side")
    assert [one.subject for one in commits_of(root)] == ["state", "merged"]


def test_each_commit_has_all_that_was_on_record(root: Path) -> None:
    """But one whose baselines cannot be read; a record that stays is one point."""
    BaselineStore(root).write(static_update(make_static(40), FIRST))
    commit(root.parent)
    (root / "sm_90/suite/test_b.jsonl").write_text("{}")
    commit(root.parent)
    found = {
        tuple(one): [value for _, value in points]
        for one, points in series_of(GitFolder(root), commits_of(root)).items()
    }
    assert found.keys() == {
        (key, target, measure) for key in (FIRST, SECOND) for target, measure in (
            (f"sm_90, {NVRTC}", "registers"), (f"sm_90, {NVRTC}", "instructions"), (H200, "time")
        )
    }  # fmt: skip
    assert found[FIRST, f"sm_90, {NVRTC}", "registers"] == [32, 40]
    assert found[SECOND, f"sm_90, {NVRTC}", "registers"] == [32]
