"""``benchmarks/counter_scatter.py``: how far counters of equal code differ between files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import counter_scatter
import pytest

INSTRUCTIONS, DRAM = "smsp__inst_executed.sum", "dram__bytes_read.sum"
ONE = {"code": "c0de", "launch": "grid", "arguments": ["int32=6"]}


def report(file: Path, instructions: float, dram: float, cache: str = "cold", **identity: Any) -> str:
    """Write a report with one counted workload; its path."""
    counters = {INSTRUCTIONS: instructions, DRAM: dram}
    work = {"key": {"workload": "a"}, "cache": cache, "identity": {**ONE, **identity}, "counters": counters}
    device = {"slug": "nvidia-h200", "uuid": f"GPU-{file.stem}"}
    tests = [{"module": "test_a.py", "test": "test_a", "device": device, "workloads": [work, {"counters": {}}]}, {}]
    file.write_text(json.dumps({"tests": tests}), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(("other", "words"), [
    ((500, 1.05e8), ""),
    ((501, 1e8), "test_a.py::test_a [a]: instructions executed 500 -> 501"),
    ((500, 1.25e8), "test_a.py::test_a [a]: DRAM bytes read 100000000 -> 125000000"),
], ids=["within", "exact", "near-exact"])  # fmt: skip
def test_counters_beyond_their_band_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other: tuple[float, float], words: str
) -> None:
    files = [report(tmp_path / "0.json", 500, 1e8), report(tmp_path / "1.json", *other)]
    assert counter_scatter.main(files) == int(bool(words))
    page, error = capsys.readouterr()
    assert error.strip() == words
    assert "2 files of 2 GPUs (nvidia-h200), 1 workloads, 1 comparisons" in page
    if not words:
        assert "Exact counters: 1 compared, 0 differ." in page
        row = "| DRAM bytes read | to 20% and 4,194,304 bytes | 1 | 1 | 5.00% above the floor | 5,000,000 bytes | 0 |"
        assert row in page
