"""``benchmarks/counter_scatter.py``: how far counters of equal code differ between files."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

INSTRUCTIONS, DRAM = "smsp__inst_executed.sum", "dram__bytes_read.sum"


@pytest.fixture
def scatter(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    return importlib.import_module("counter_scatter")


def document(instructions: float, dram: float, *, uuid: str, cache: str = "cold", **more: Any) -> dict[str, Any]:
    counters = {INSTRUCTIONS: instructions, DRAM: dram, "profiler__replayer_passes": more.pop("passes", 1.0)}
    identity = {"code": "c0de", "launch": "grid", **more}
    work = {"key": {"workload": "a"}, "cache": cache, "identity": identity, "counters": counters}
    device = {"slug": "nvidia-h200", "uuid": uuid}
    return {"tests": [{"module": "test_a.py", "test": "test_a", "device": device, "workloads": [work]}]}


def run(scatter: ModuleType, folder: Path, *documents: dict[str, Any]) -> tuple[int, str]:
    files = []
    for number, one in enumerate(documents):
        files.append(folder / f"{number}.json")
        files[-1].write_text(json.dumps(one), encoding="utf-8")
    page = folder / "page.md"
    status = scatter.main([*map(str, files), f"--output={page}"])
    return status, page.read_text(encoding="utf-8") if page.exists() else ""


def test_equal_code_within_its_bands(scatter: ModuleType, tmp_path: Path) -> None:
    status, page = run(scatter, tmp_path, document(500, 1e8, uuid="a"), document(500, 1.05e8, uuid="b"))
    assert status == 0
    assert "2 files of 2 GPUs" in page
    assert "Exact counters: 1 compared, 0 differ." in " ".join(page.split())
    assert (
        "| DRAM bytes read | to 20% and 4,194,304 bytes | 1 | 1 | 5.00% above the floor | 5,000,000 bytes | 0 |" in page
    )


@pytest.mark.parametrize(
    ("other", "words"),
    [((501, 1e8), "instructions executed 500 -> 501"), ((500, 1.25e8), "DRAM bytes read 100000000")],
    ids=["exact", "near-exact"],
)  # fmt: skip
def test_a_counter_beyond_its_band_is_named(
    scatter: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], other: tuple[float, float], words: str
) -> None:
    assert run(scatter, tmp_path, document(500, 1e8, uuid="a"), document(*other, uuid="a"))[0] == 1
    assert f"test_a.py::test_a [a]: {words}" in capsys.readouterr().err


def test_a_warm_workloads_traffic_in_other_passes_is_left_out(scatter: ModuleType, tmp_path: Path) -> None:
    warm = document(500, 1e8, uuid="a", cache="warm"), document(500, 9e8, uuid="a", cache="warm", passes=16.0)
    status, page = run(scatter, tmp_path, *warm)
    assert status == 0
    assert "DRAM" not in page


@pytest.mark.parametrize("change", [{"code": "another"}, {"launch": "another"}, {"arguments": ["int32=7"]}])
def test_other_code_launch_or_arguments_are_not_compared(
    scatter: ModuleType, tmp_path: Path, change: dict[str, Any]
) -> None:
    one = document(500, 1e8, uuid="a", arguments=["int32=6"])
    other = document(900, 9e8, uuid="a", **{"arguments": ["int32=6"], **change})
    assert run(scatter, tmp_path, one, other) == (1, "")
