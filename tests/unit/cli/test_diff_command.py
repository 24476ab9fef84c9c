"""``gpuperf diff`` on repositories of baselines: what it says, how fast, and what keeps it from an answer."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from baseline_samples import make_session
from git_samples import as_another_user, commit, git
from record_samples import identity_of, static_of, time_of

from pytest_gpuperf.baselines.store import BaselineStore, Update
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord

H200, NVRTC, ARCHS = "nvidia-h200", "nvrtc 13.0.88", ("sm_80", "sm_90", "sm_120")
NEW_CODE = "d1" * 32
SESSIONS = [make_session(number, id=f"s{number}") for number in (1, 2)]
READ = "dram__bytes_read.sum"
SPILLING = static_of(code=NEW_CODE, registers=48, spills=134, occupancy=0.4375)


def key(size: int | str, module: str = "tests/test_scale.py", test: str = "test_scale") -> Key:
    return Key(module=module, test=f"{test}[{size}]", workload="scale")


def taken_again(midmean: float, **changes: object) -> TimeRecord:
    """Of other code, in the second session."""
    return time_of(midmean, identity_of(code=NEW_CODE), session=SESSIONS[1], **changes)  # type: ignore[arg-type]


def write(root: Path, static: StaticRecord, times: dict[Key, TimeRecord], keys: Iterable[Key] = ()) -> None:
    """Static records of all architectures for the keys, and for those of the times."""
    everywhere = {(arch, NVRTC, one): static for arch in ARCHS for one in (*keys, *times)}
    time = {(H200, one): msgspec.structs.replace(t, session=t.session or SESSIONS[0]) for one, t in times.items()}
    BaselineStore(root).write(Update(static=everywhere, time=time, roofs={H200: {"dram": 4e12}}))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel at 64 sizes, one of them timed, in the first commit; it spills in the second."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "baselines"
    sizes = [key(size) for size in range(64)]
    write(root, static_of(), {key(8): time_of(6640.0, counters={READ: 1e8})}, sizes)
    commit(tmp_path)
    write(root, SPILLING, {key(8): taken_again(9960.0, counters={READ: 2e8})}, sizes)
    commit(tmp_path)
    return root


SAID = """\
Baselines of HEAD~1 -> the working tree

tests/test_scale.py
  scale
    64 workloads of test_scale[...] on sm_80, sm_90, sm_120: registers 40 -> 48, spill stores
      0 -> 134 bytes, spill loads 0 -> 134 bytes, occupancy 50 -> 43.8 % (limited by registers)
    test_scale[8] [scale] on nvidia-h200: 6.64 us -> 9.96 us (+50.0 %), DRAM bytes read
      100000000 -> 200000000 bytes (+100.00 %)

1 kernel changed
"""


def test_change_is_told_with_its_figures(root: Path, command: Any) -> None:
    assert command("diff", "HEAD~1") == (0, SAID, "")
    assert command("diff") == (0, "Baselines of HEAD -> the working tree\n\nNo figure differs\n", "")
    git(root.parent, "rm", "-rq", "baselines")
    status, said, _ = command("diff", "--baselines", "baselines")
    assert status == 0
    assert "64 workloads of test_scale[...]: removed" in said
    assert "manifest: gpu models: nvidia-h200 -> none\nmanifest: roofs: nvidia-h200 -> none\n" in said
    assert said.endswith("64 workloads removed\n")


def test_two_commits_are_compared_and_the_working_tree_counts(root: Path, command: Any) -> None:
    status, said, _ = command("diff", "--markdown", "HEAD~1", "HEAD")
    assert status == 0
    assert said.startswith("## Baselines of HEAD\\~1 -&gt; HEAD\n\n**1 kernel changed**\n")
    assert "| <code>scale</code> | 64 workloads of test\\_scale\\[...\\] | sm\\_80, sm\\_90, sm\\_120 |" in said
    write(root, SPILLING, {}, [key("new")])
    assert command("diff")[1].endswith("  workloads\n    test_scale[new] [scale]: new\n\n1 workload new\n")


def test_folder_elsewhere(root: Path, command: Any) -> None:
    git(root.parent, "mv", "baselines", "other")
    commit(root.parent)
    other = root.parent / "other"
    write(other, static_of(), {}, [key(1)])
    status, said, _ = command("diff", "--baselines", other, folder=other / "sm_90")
    assert status == 0
    assert "test_scale[1] [scale] on sm_80, sm_90, sm_120: registers 48 -> 40" in said


@pytest.mark.parametrize(("arguments", "words"), [
    (["no-such"], "git knows no revision 'no-such'"), (["HEAD~9", "HEAD"], "git knows no revision 'HEAD~9'"),
    (["--baselines", "none"], "there are no baselines in none, neither at HEAD nor in the working tree: name"),
    (["HEAD~1"], "{}/manifest.json: this baseline cannot be read: "),
    (["--baselines", "/"], "git reads no repository at /"),
])  # fmt: skip
def test_errors_have_a_remedy(root: Path, command: Any, arguments: list[str], words: str) -> None:
    if arguments == ["HEAD~1"]:
        (root / "manifest.json").write_text("{")
        words = words.format(root)
    status, said, problem = command("diff", *arguments)
    assert (status, said) == (1, "")
    assert problem.startswith(f"gpuperf diff: {words}")


@pytest.mark.parametrize("name", ["diff", "history"])
def test_a_repository_of_another_user_is_told_with_gits_own_remedy(
    root: Path, monkeypatch: pytest.MonkeyPatch, command: Any, name: str
) -> None:
    as_another_user(monkeypatch)
    status, _, said = command(name, "--baselines", root)
    assert status == 1
    assert said.startswith(f"gpuperf {name}: git reads no repository at {root}")
    assert f"git config --global --add safe.directory {root.parent})" in said
