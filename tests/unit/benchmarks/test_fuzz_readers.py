"""Mutated and large files through the readers, as ``benchmarks/fuzz_readers.py`` does with many more of them."""

from __future__ import annotations

from pathlib import Path

import fuzz_readers
import pytest

from pytest_gpuperf.baselines.baseline_errors import BaselineError

ROOT = Path(__file__).parents[3]


def test_mutated_files_are_read_or_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_CUBIN_BYTES", "MAX_FILE_BYTES"):  # smaller ones than the limits allow
        monkeypatch.setattr(fuzz_readers, name, 1 << 19)
    assert fuzz_readers.main(["--share", "0.02"]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| mutated")]
    assert [(row[0], row[1], row[4]) for row in rows] == [
        ("| mutated baselines", "400", "0"), ("| mutated cubins", "200", "0"), ("| mutated audited files", "4", "0"),
        ("| mutated names", "10", "0"),
    ]  # fmt: skip
    assert all(int(row[3]) > 0 for row in rows if int(row[1]) >= 10), "some are read"


def test_other_errors_long_waits_and_markup_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(content: bytes) -> None:
        raise KeyError("x") if content else BaselineError("x")

    (failure,) = fuzz_readers.read_all("a", [b"", b"1"], read)
    assert failure.startswith("a 1: KeyError: 'x'")
    monkeypatch.setattr(fuzz_readers, "MOST_S", -1.0)
    assert fuzz_readers.read_all("a", [b""], read)[0].startswith("a 0: refused, 0.00 s")
    monkeypatch.setattr(fuzz_readers, "as_markdown", lambda document: document.report.task)
    fuzz_readers.read_name(b"plain")
    with pytest.raises(AssertionError, match="is markup"):
        fuzz_readers.read_name(b"<b>")
