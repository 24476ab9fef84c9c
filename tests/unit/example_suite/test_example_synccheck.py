"""What the example suite makes of compute-sanitizer's words, from a stand-in that says them."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

LAUNCH = SimpleNamespace(binary=SimpleNamespace(cubin=b"\x7fELF", symbol="sync_divergent"), block=(32, 2, 2))


@pytest.fixture
def synccheck(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "example_suite"))
    return importlib.import_module("synccheck")


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Put a compute-sanitizer in the place of the machine's that runs a line of shell."""

    def put(line: str) -> None:
        tool = tmp_path / "compute-sanitizer"
        tool.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    return put


@pytest.mark.parametrize("count", [0, 64])
def test_errors_are_those_of_the_summary(synccheck: ModuleType, says: Any, tmp_path: Path, count: int) -> None:
    says(f'echo "$@" > {tmp_path}/arguments; echo "========= ERROR SUMMARY: {count} errors"')
    assert synccheck.errors(LAUNCH, tmp_path) == count
    arguments = (tmp_path / "arguments").read_text(encoding="utf-8").split()
    assert arguments[:2] == ["--tool", "synccheck"]
    assert arguments[-6:] == [str(tmp_path / "kernel.cubin"), "sync_divergent", "128", "32", "2", "2"]
    assert (tmp_path / "kernel.cubin").read_bytes() == b"\x7fELF"


@pytest.mark.parametrize(
    ("line", "limit_s", "words"),
    [("echo Segmentation fault >&2; exit 1", 60.0, "gave no summary: Segmentation fault"),
     ("exec sleep 30", 0.2, "was not done after 0.2 s"), ("", 60.0, "no compute-sanitizer on this machine")],
    ids=["crash", "too long", "no tool"],
)  # fmt: skip
def test_without_a_summary_the_claim_is_not_looked_at(
    synccheck: ModuleType, says: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, limit_s: float,
    words: str,
) -> None:  # fmt: skip
    if line:
        says(line)
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(synccheck, "USUAL_FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(synccheck, "LIMIT_S", limit_s)
    with pytest.raises(LookupError, match=words):
        synccheck.errors(LAUNCH, tmp_path)
