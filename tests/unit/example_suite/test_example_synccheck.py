"""What the example suite reads in compute-sanitizer's summary, from a stand-in that prints one."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

LAUNCH = SimpleNamespace(binary=SimpleNamespace(cubin=b"\x7fELF", symbol="sync_divergent"), block=(32, 2, 2))


@pytest.fixture
def synccheck(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "example_suite"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return importlib.import_module("synccheck")


def put(folder: Path, line: str) -> None:
    tool = folder / "compute-sanitizer"
    tool.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    tool.chmod(0o755)


@pytest.mark.parametrize("count", [0, 64])
def test_errors_are_those_of_the_summary(synccheck: ModuleType, tmp_path: Path, count: int) -> None:
    put(tmp_path, f'echo "$@" > {tmp_path}/arguments; echo "========= ERROR SUMMARY: {count} errors"')
    assert synccheck.errors(LAUNCH, tmp_path) == count
    arguments = (tmp_path / "arguments").read_text(encoding="utf-8").split()
    assert arguments[:2] == ["--tool", "synccheck"]
    assert arguments[-6:] == [str(tmp_path / "kernel.cubin"), "sync_divergent", "128", "32", "2", "2"]


@pytest.mark.parametrize(
    ("line", "words"),
    [("echo Segmentation fault >&2; exit 1", "gave no summary: Segmentation fault"),
     ("exec sleep 30", "was not done after 0.5 s"), ("", "no compute-sanitizer on this machine")],
    ids=["crash", "too long", "no tool"],
)  # fmt: skip
def test_without_a_summary_the_claim_is_not_looked_at(
    synccheck: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, words: str
) -> None:
    monkeypatch.setattr(synccheck, "LIMIT_S", 0.5)
    if line:
        put(tmp_path, line)
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(synccheck, "USUAL_FOLDERS", (str(tmp_path),))
    with pytest.raises(LookupError, match=words):
        synccheck.errors(LAUNCH, tmp_path)
