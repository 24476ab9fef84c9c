"""The script that says how long verdicts take: its table, its bounds, and baselines said to be of other code."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from evidence_tree import read_evidence
from loaded_scripts import load_script

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import Key

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script(ROOT / "benchmarks" / "verdict_seconds.py")


def taken(method: str, seconds: float, time_ns: float = 50_000.0) -> dict[str, object]:
    return {"method": method, "seconds": seconds, "time_ns": time_ns}


def test_medians_are_told_by_method_and_length(script: ModuleType) -> None:
    found = [taken("identity", 0.1), taken("identity", 0.12), taken("identity", 0.5), taken("identity", 9.0, 2e6)]
    lines, broken = script.table(found)
    assert lines[2:] == [
        "| identity | up to 100 us | 3 | 0.12 | 0.50 | 0.50 |",
        "| identity | more than 100 us | 1 | 9.00 | 9.00 | 9.00 |",
    ]
    assert not broken


@pytest.mark.parametrize(("method", "bound"), [("identity", 0.15), ("screen", 0.2), ("paired", 0.4)])
def test_a_median_above_its_bound_is_broken(script: ModuleType, method: str, bound: float) -> None:
    assert script.table([taken(method, bound)])[1] == []
    assert script.table([taken(method, bound + 0.01)])[1] == [
        f"{method}: median {bound + 0.01:.2f} s, at most {bound} s wanted"
    ]


def test_a_run_that_leaves_nothing_is_not_told_as_what_an_earlier_one_left(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "seconds-changed.json").write_text("[]")
    ended = subprocess.CompletedProcess([], 3, stdout="no GPU", stderr="")
    monkeypatch.setattr(script.subprocess, "run", lambda *_, **__: ended)
    with pytest.raises(SystemExit, match="the run seconds-changed left nothing:\nno GPU"):
        script.measure([], tmp_path, "seconds-changed")


@pytest.mark.parametrize(
    ("words", "names", "command"),
    [
        ([], ["unchanged", "paired", "changed"], ""),
        (["--run=changed", "--run=changed"], ["changed"], " --run=changed"),
        (["--run=paired", "test_a.py"], ["paired"], " --run=paired test_a.py"),
    ],
)
def test_runs_that_are_picked_are_made_once_and_told(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], names: list[str],
    command: str,
) -> None:  # fmt: skip
    made = []

    def measured(_arguments: object, _folder: Path, name: str) -> tuple[list[dict[str, object]], int]:
        made.append(name.removeprefix("seconds-"))
        return [taken("paired", 0.1)], 0

    monkeypatch.setattr(script, "measure", measured)
    monkeypatch.setattr(script.sys, "argv", ["verdict_seconds.py", f"--output={tmp_path / 'page.md'}", *words])
    assert script.main() == 0
    assert made == names
    assert f"Made by `python benchmarks/verdict_seconds.py{command}`." in (tmp_path / "page.md").read_text()


def test_a_copy_of_the_baselines_says_that_all_timed_code_was_another(script: ModuleType, tmp_path: Path) -> None:
    script.as_if_changed(ROOT / "baselines", tmp_path)
    name = "nvidia-h200/example_suite/test_transpose32.json"
    before, after = (read_evidence(root / name) for root in (ROOT / "baselines", tmp_path))
    work = after["tests"]["test_transpose_of_a_batch"]
    assert {one["identity"]["code"] for one in work.values()} == {script.OTHER_CODE}
    for test, workloads in before["tests"].items():
        for workload, record in workloads.items():
            record["identity"].update(code=script.OTHER_CODE, source=script.OTHER_CODE)
            assert after["tests"][test][workload] == record
    static = "sm_90/example_suite/test_transpose32.json"
    before, after = (read_evidence(root / static) for root in (ROOT / "baselines", tmp_path))
    for toolchain, tests in before["toolchains"].items():
        for test, workloads in tests.items():
            for workload, record in workloads.items():
                record["profile"]["code_hash"] = record["source_hash"] = script.OTHER_CODE
                assert after["toolchains"][toolchain][test][workload] == record


def test_code_said_to_be_another_is_paired_without_being_disassembled(script: ModuleType, tmp_path: Path) -> None:
    script.as_if_changed(ROOT / "baselines", tmp_path)
    store = BaselineStore(tmp_path)
    key = Key("example_suite/test_transpose32.py", "test_transpose_of_a_batch", "transpose_padded")
    record = store.time("nvidia-h200", key)
    assert record is not None
    static = store.static("sm_90", key, record.identity.toolchain).record
    assert static is not None
    assert static.profile.code_hash == record.identity.code == script.OTHER_CODE
