"""``gpuperf history``: which commits count, what they have on record, and where it took a step."""

from __future__ import annotations

from pathlib import Path

from baseline_samples import make_session
from git_samples import commit, git
from record_samples import static_of, time_of

from pytest_gpuperf.baselines.git_objects import GitFolder
from pytest_gpuperf.baselines.store import BaselineStore, Update
from pytest_gpuperf.cli.history_command import commits_of, series_of
from pytest_gpuperf.model.evidence import Key

KEY = Key(module="tests/test_scale.py", test="test_scale[=1+1]", workload="scale")
QUIET = Key(module="tests/test_quiet.py", test="test_quiet", workload="<b>quiet</b>")
NAMES = {"slower": KEY, "quiet": QUIET}
SESSION = make_session(id="s1")
SCATTER = (1.0, 0.997, 1.004, 1.001, 0.998, 1.003)
PLANTED = 4


def record(root: Path, registers: int, *those: Key, **times: float) -> None:
    static = {("sm_90", "nvrtc 13.0.88", key): static_of(registers=registers) for key in those}
    time = {("nvidia-h200", key): time_of(times[name], session=SESSION) for name, key in NAMES.items() if times}
    BaselineStore(root / "baselines").write(Update(static=static, time=time))


def test_a_planted_step_is_found_at_its_commit(tmp_path, monkeypatch, command):
    """Each commit records a time anew, with a scatter of 0.3 %; one is 3 % slower and takes two registers."""
    monkeypatch.chdir(tmp_path)
    names = []
    for number, scatter in enumerate(SCATTER):
        after = number >= PLANTED
        times = {"slower": 50_000 * scatter * (1.03 if after else 1.0), "quiet": 50_000 * scatter}
        record(tmp_path, 42 if after else 40, KEY, **times)
        names.append(commit(tmp_path, f"state {number}"))
    status, said, _ = command("history")
    assert status == 0
    out = said.splitlines()
    (time,) = [place for place, line in enumerate(out) if line.startswith(f"{KEY} time on nvidia-h200: ")]
    assert out[time].endswith(f": 50 us -> 51.7 us, {len(SCATTER)} commits")
    assert out[time + 1].startswith(f"    +2.7 % at {names[PLANTED][:12]} (2")
    assert out[time + 1].endswith(f", state {PLANTED})")
    (registers,) = [place for place, line in enumerate(out) if " registers on sm_90, nvrtc 13.0.88: 40 -> 42" in line]
    assert "2 commits" in out[registers]  # a record that stays is no new point
    assert f"+5.0 % at {names[PLANTED][:12]}" in out[registers + 1]
    assert sum(" at " in line for line in out) == 2  # and nothing of the quiet one
    for arguments, says in (
        (["no_such_test.py"], "there is no baseline of no_such_test.py"),
        (["--baselines", "nowhere"], "there is no folder nowhere"),
    ):
        status, _, problem = command("history", *arguments)
        assert (status, says in problem) == (1, True)


def test_commits_along_first_parents_count_and_a_record_that_stays_is_one_point(tmp_path: Path) -> None:
    """A merge stands for its branch; a commit whose baselines cannot be read is left out."""
    root = tmp_path / "baselines"
    record(tmp_path, 32, KEY, QUIET)
    commit(tmp_path)
    git(root, "checkout", "-q", "-b", "side")
    for registers in (36, 40):
        record(tmp_path, registers, KEY)
        second = commit(tmp_path)
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "--no-ff", "-m", 'Caf\u00e9 "quoted"', "side")
    (tmp_path / "other.py").touch()
    commit(tmp_path, "elsewhere")
    (root / "sm_90/tests/test_quiet.jsonl").write_text("{}")
    commit(tmp_path, "damaged")
    found = commits_of(root)
    assert [one.subject for one in found] == ["state", 'Caf\u00e9 "quoted"', "damaged"]
    assert git(root, "rev-parse", f"{found[1].name}^2") == second
    assert found[0].date == git(root, "show", "-s", "--format=%cI", found[0].name)
    series = series_of(GitFolder(root), found).items()
    assert {(one.key, one.measure): [value for _, value in points] for one, points in series} == {
        (KEY, "registers"): [32, 40], (QUIET, "registers"): [32],
        (KEY, "instructions"): [61, 61], (QUIET, "instructions"): [61],
    }  # fmt: skip
