"""Compilers of a team beside the one in use: which records an update leaves behind, and what records for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from run_samples import COMPILER, Run, key, static_record

from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.model.result import Recorded
from pytest_gpuperf.session import other_toolchains
from pytest_gpuperf.session.other_toolchains import LOG_LINES, behind, choose, record_others

OTHER = "nvrtc 12.9.86"
NEW = msgspec.structs.replace(static_record("c1"), source_hash="51" * 32)


@pytest.fixture(autouse=True)
def this_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_toolchains, "toolchain", lambda: COMPILER)


def write(run: Run, record: Any, compiler: str = COMPILER, name: str = "copy") -> None:
    run.store.write(Update(static={("sm_90", compiler, key(name)): record}))


def recorded(name: str = "copy", after: Any = NEW) -> Recorded:
    return Recorded(key=key(name), target="sm_90", after=after)


@pytest.fixture
def updated(run: Run) -> Run:
    """A workload is on record of two compilers, and just recorded with newer source for the one in use."""
    write(run, static_record(), OTHER)
    write(run, NEW)
    return run


def test_a_record_of_older_source_is_behind_and_so_is_none(updated: Run) -> None:
    assert behind(updated.store, [recorded()], COMPILER) == {OTHER: {key()}}
    write(updated, NEW, name="second")
    both = [recorded(), recorded("second")]
    assert behind(updated.store, both, COMPILER) == {OTHER: {key(), key("second")}}
    write(updated, msgspec.structs.replace(NEW, kernel="other"), OTHER)
    assert behind(updated.store, both, COMPILER) == {OTHER: {key("second")}}


def test_what_was_not_written_and_compilers_of_another_kind_are_not_behind(updated: Run) -> None:
    assert behind(updated.store, [recorded(after=static_record("c2"))], COMPILER) == {}
    assert behind(updated.store, [recorded(after=None)], COMPILER) == {}
    assert behind(updated.store, [recorded(after=None), recorded()], COMPILER) == {OTHER: {key()}}
    write(updated, static_record(), "nvcc 12.9.86")
    assert behind(updated.store, [recorded()], COMPILER) == {OTHER: {key()}}


def told(run: Run, *found: Recorded) -> tuple[list[str], list[str]]:
    """Lines, and what was said while it went on."""
    progress: list[str] = []
    return list(record_others(run.config, run.options, run.store, found or [recorded()], progress.append)), progress


def test_a_compiler_that_is_not_at_hand_is_behind_with_the_remedy(updated: Run) -> None:
    remedy = (
        "Update with it too: pip install --target {0}/12.9.86 nvidia-cuda-nvrtc==12.9.86, then pytest "
        "--update-baselines --gpuperf-nvrtc={0}/12.9.86"
    )
    late = f"{OTHER}: 1 workload is behind now, on record with an older source or not at all. "
    assert told(updated) == ([late + remedy.format("nvrtcs")], [])
    folder = updated.config.rootpath / "compilers"
    folder.mkdir()
    assert told(updated.with_options(toolchains=folder)) == ([late + remedy.format(folder)], [])
    write(updated, NEW, name="second")
    assert told(updated, recorded(), recorded("second"))[0][0].startswith(f"{OTHER}: 2 workloads are behind now, ")


def test_a_compiler_that_is_no_nvrtc_has_a_remedy_of_its_own(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_toolchains, "toolchain", lambda: "nvcc 13.0.88")
    write(run, static_record(), "nvcc 12.9.86")
    write(run, NEW, "nvcc 13.0.88")
    folder = run.config.rootpath / "compilers"
    folder.mkdir()
    (line,), _ = told(run.with_options(toolchains=folder))
    late = "nvcc 12.9.86: 1 workload is behind now, on record with an older source or not at all. "
    assert line == f"{late}Update where that compiler is at hand"


def test_an_update_of_times_alone_and_a_process_that_records_for_another_say_nothing(updated: Run) -> None:
    assert told(updated, recorded(after=None)) == ([], [])
    assert told(updated.with_options(nvrtc=Path("/opt/nvrtc"))) == ([], [])


class Child:
    """A process that records with another compiler."""

    def __init__(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        self.status: int | None = 0
        self.log = "12 baselines written\n"
        self.started: list[tuple[Sequence[str], Path, float, str]] = []
        self.folder = run.config.rootpath / "compilers"
        for name in ("a", "b", "c"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "0").touch()
        libraries = {"a": ["11.8.89"], "b": ["12.9.86"], "c": ["12.9.86"]}
        monkeypatch.setattr(other_toolchains, "libraries_of", lambda folder: libraries[folder.name])
        monkeypatch.setattr(other_toolchains, "run_child", self.run)
        monkeypatch.setattr(other_toolchains, "same_command", lambda config, folder: ["pytest", str(folder)])
        run.with_options(toolchains=self.folder)

    def run(self, command: Sequence[str], cwd: Path, log: Path, limit_s: float, environ: Any) -> int | None:
        assert Path(command[1]) == log.parent
        assert environ["PATH"]
        self.started.append((command, cwd, limit_s, environ["CUDA_VISIBLE_DEVICES"]))
        log.write_text(self.log)
        return self.status


@pytest.fixture
def child(updated: Run, monkeypatch: pytest.MonkeyPatch) -> Child:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    return Child(updated, monkeypatch)


def test_a_compiler_at_hand_records_in_a_process_without_a_gpu(updated: Run, child: Child) -> None:
    assert told(updated) == ([f"{OTHER}: 12 baselines written"], [f"recording for {OTHER}"])
    ((command, cwd, limit_s, devices),) = child.started
    assert command[2:] == [f"--gpuperf-nvrtc={child.folder / 'b'}"]
    assert (cwd, limit_s, devices) == (updated.config.rootpath, 3600.0, "")


def test_each_compiler_that_is_behind_has_its_line(updated: Run, child: Child) -> None:
    write(updated, static_record(), "nvrtc 11.8.89")
    write(updated, static_record(), "nvrtc 11.7.99")
    lines, _ = told(updated)
    assert [line.partition(":")[0] for line in lines] == ["nvrtc 11.7.99", "nvrtc 11.8.89", OTHER]
    assert "is behind now" in lines[0]
    assert lines[1:] == ["nvrtc 11.8.89: 12 baselines written", f"{OTHER}: 12 baselines written"]


@pytest.mark.parametrize(
    ("status", "log", "said"),
    [
        (1, "1 baseline written\nred", "pytest exit status 1:\n1 baseline written\nred"),
        (0, "nothing", "pytest exit status 0:\nnothing"),
        (None, "".join(f"{number}\n" for number in range(9)), "pytest exit status None:\n4\n5\n6\n7\n8"),
    ],
)
def test_a_process_that_recorded_nothing_says_why(
    updated: Run, child: Child, status: int | None, log: str, said: str
) -> None:
    child.status, child.log = status, log
    assert told(updated)[0] == [f"{OTHER}: not recorded, {said}"]
    assert LOG_LINES == 5


def test_the_last_word_on_what_was_written_counts(updated: Run, child: Child) -> None:
    child.log = "1 baseline written\n2 baselines written\nthe 3 baselines written before\n"
    assert told(updated)[0] == [f"{OTHER}: 2 baselines written"]


def test_a_folder_without_a_compiler_is_no_choice(tmp_path: Path) -> None:
    with pytest.raises(pytest.UsageError, match=r"^--gpuperf-nvrtc: .*"):
        choose(tmp_path)
