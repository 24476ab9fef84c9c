"""Reports of ncu, read by NVIDIA's module: the real one on real reports, and stand-ins where it misbehaves."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_gpuperf.counters import report as reading
from pytest_gpuperf.counters.failures import CountersUnavailable
from pytest_gpuperf.counters.report import MODULE, main, read_here, read_report

NCU = Path("/nowhere/of/any/ncu")
FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.ncu-rep"))


@pytest.mark.parametrize("report", FIXTURES, ids=lambda path: path.stem)
def test_a_real_report_reads_as_ncu_itself_prints_it(report):
    """The expected figures are ncu's own words: ``--page raw --csv --print-units base`` of the same report."""
    expected = json.loads(report.with_suffix(".json").read_text(encoding="utf-8"))
    results = read_report(report, NCU)
    assert [result.kernel for result in results] == [kernel["kernel"] for kernel in expected["kernels"]]
    assert [result.range for result in results] == [kernel["range"] for kernel in expected["kernels"]]
    for result, kernel in zip(results, expected["kernels"], strict=True):
        assert kernel["metrics"]
        for name, printed in kernel["metrics"].items():
            decimals = len(printed.partition(".")[2])
            assert result.metrics[name] == pytest.approx(float(printed), rel=1e-9, abs=0.501 * 10**-decimals), name


class Metric:
    def __init__(self, value, unit="", there=True):
        self._value, self._unit, self._there = value, unit, there

    def has_value(self):
        return self._there

    def value(self):
        return self._value

    def unit(self):
        return self._unit


class Action:
    def __init__(self, name, ranges, metrics):
        self._name, self._ranges, self._metrics = name, ranges, metrics

    def name(self):
        return self._name

    def nvtx_state(self):
        if self._ranges is None:
            return None
        names = self._ranges
        return SimpleNamespace(
            domains=lambda: (0,), domain_by_id=lambda number: SimpleNamespace(push_pop_ranges=lambda: names)
        )

    def metric_names(self):
        return tuple(self._metrics)

    def metric_by_name(self, name):
        return self._metrics[name]


def module_of(*actions):
    chunk = SimpleNamespace(num_actions=lambda: len(actions), action_by_idx=lambda index: actions[index])
    context = SimpleNamespace(num_ranges=lambda: 1, range_by_idx=lambda index: chunk)
    return SimpleNamespace(load_report=lambda path: context, __file__="/here/ncu_report.py")


def test_kernels_are_found_by_their_range_and_numbers_by_their_kind(monkeypatch):
    metrics = {
        "a__count.sum": Metric(12, "inst"), "a__share.pct": Metric(12.5, "%"), "a__name": Metric("fast"),
        "a__nothing.sum": Metric(0, there=False), "a__nan.pct": Metric(float("nan")),
    }  # fmt: skip
    actions = (
        Action("warm_up", None, metrics), Action("other", ("somebody's",), metrics),
        Action("work", ("outer", "gpuperf:7"), metrics), Action("work", ("gpuperf:8", "inner"), metrics),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, MODULE, module_of(*actions))
    results = read_here(Path("any.ncu-rep"), NCU)
    assert [(result.kernel, result.range) for result in results] == [("work", 7), ("work", 8)]
    assert results[0].metrics == {"a__count.sum": 12.0, "a__share.pct": 12.5}


@pytest.mark.parametrize(
    "content", [b"nonsense" * 100, b"", b"NVR\x00" + b"\x01" * 300], ids=["text", "empty", "cut short"]
)
def test_a_broken_report_never_takes_the_run_along(tmp_path, content):
    """NVIDIA's module returns garbage for some of them and crashes on others."""
    path = tmp_path / "broken.ncu-rep"
    path.write_bytes(content)
    results = None
    with contextlib.suppress(CountersUnavailable):
        results = read_report(path, NCU)
    assert not results


def test_a_reader_that_crashes_is_told(tmp_path, monkeypatch):
    crashing = tmp_path / "ncu_report.py"
    crashing.write_text("import os, signal\n\ndef load_report(path): os.kill(os.getpid(), signal.SIGSEGV)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(CountersUnavailable) as problem:
        read_report(tmp_path / "any.ncu-rep", NCU)
    assert "any.ncu-rep, cannot be read (its reader ended with status -11)" in problem.value.reason


def test_a_reader_is_not_misled_by_modules_of_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUPERF_TESTS_COLD", "1")  # a warm process has imported the library's before
    (tmp_path / "math.py").write_text("raise SystemExit('not the library')")
    (tmp_path / "subprocess.py").write_text("raise SystemExit('not the library')")
    folder = tmp_path / "readers"
    folder.mkdir()
    (folder / "ncu_report.py").write_text("def load_report(path): raise OSError('its own words')\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CountersUnavailable, match="its own words"):
        read_report(tmp_path / "any.ncu-rep", NCU)


def test_a_reader_that_hangs_is_ended(tmp_path, monkeypatch):
    (tmp_path / "ncu_report.py").write_text("import time\n\ndef load_report(path): time.sleep(60)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(reading, "LIMIT_S", 1.0)
    with pytest.raises(CountersUnavailable) as problem:
        read_report(tmp_path / "any.ncu-rep", NCU)
    assert "was not done after 1 s" in problem.value.reason


def test_without_the_package_the_reason_says_so(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, MODULE, None)
    assert main([str(tmp_path / "any.ncu-rep"), str(NCU)]) == "the Python package ncu-report is not installed"


BESIDE = """
class Context:
    def num_ranges(self): return 1
    def range_by_idx(self, index): return self
    def num_actions(self): return 1
    def action_by_idx(self, index): return self
    def name(self): return "from beside"
    def nvtx_state(self): return self
    def domains(self): return (0,)
    def domain_by_id(self, number): return self
    def push_pop_ranges(self): return ("gpuperf:1",)
    def metric_names(self): return ()

def load_report(path): return Context()
"""


@pytest.mark.parametrize(
    ("ncu", "module"),
    [
        ("nsight-compute/2025.3.1/ncu", "nsight-compute/2025.3.1/extras/python"),
        ("cuda/bin/ncu", "cuda/nsight-compute-2025.3.1/extras/python"),
    ],
)
def test_ncus_own_module_stands_in_for_the_package(monkeypatch, tmp_path, ncu, module):
    (tmp_path / ncu).parent.mkdir(parents=True)
    (tmp_path / ncu).touch()
    (tmp_path / module).mkdir(parents=True)
    (tmp_path / module / "ncu_report.py").write_text(BESIDE, encoding="utf-8")
    monkeypatch.setitem(sys.modules, MODULE, None)
    assert [result.kernel for result in read_here(Path("any.ncu-rep"), tmp_path / ncu)] == ["from beside"]


def test_a_package_too_old_for_the_report_gives_way_to_ncus_own(monkeypatch, tmp_path):
    (tmp_path / "extras" / "python").mkdir(parents=True)
    (tmp_path / "extras" / "python" / "ncu_report.py").write_text(BESIDE, encoding="utf-8")

    def refuse(path):
        raise RuntimeError("report version 99 is not supported")

    old = SimpleNamespace(load_report=refuse, __file__="/there/ncu_report.py")
    monkeypatch.setitem(sys.modules, MODULE, old)
    assert [result.kernel for result in read_here(Path("any.ncu-rep"), tmp_path / "ncu")] == ["from beside"]
