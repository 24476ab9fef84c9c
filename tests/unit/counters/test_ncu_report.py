"""Reports of ncu, read by NVIDIA's module: the real one on real reports, and stand-ins where it misbehaves."""

from __future__ import annotations

import contextlib
import json
import lzma
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_gpuperf.counters import report as reading
from pytest_gpuperf.counters.report import main, read_report
from pytest_gpuperf.counters.run_ncu import CountersUnavailable

FIXTURE = Path(__file__).parent / "fixtures" / "nvidia-h200.ncu-rep.xz"


def test_a_real_report_reads_as_ncu_itself_prints_it(tmp_path):
    """The expected figures are ncu's own words: ``--page raw --csv --print-units base`` of the same report."""
    expected = json.loads(FIXTURE.with_name("nvidia-h200.json").read_text(encoding="utf-8"))
    report = tmp_path / "report.ncu-rep"
    report.write_bytes(lzma.decompress(FIXTURE.read_bytes()))
    results = read_report(report)
    assert [(one.kernel, one.range) for one in results] == [
        (one["kernel"], str(one["range"])) for one in expected["kernels"]
    ]
    for result, kernel in zip(results, expected["kernels"], strict=True):
        assert kernel["metrics"]
        for name, printed in kernel["metrics"].items():
            decimals = len(printed.partition(".")[2])
            assert result.metrics[name] == pytest.approx(float(printed), rel=1e-9, abs=0.501 * 10**-decimals), name


def metric(value, there=True):
    return SimpleNamespace(value=lambda: value, has_value=lambda: there)


def action(name, ranges, metrics):
    """A kernel in NVTX ranges of these names; None: in none."""
    domain = SimpleNamespace(push_pop_ranges=lambda: ranges)
    state = None if ranges is None else SimpleNamespace(domains=lambda: (0,), domain_by_id=lambda number: domain)
    return SimpleNamespace(
        name=lambda: name, nvtx_state=lambda: state, metric_names=lambda: tuple(metrics),
        metric_by_name=metrics.__getitem__,
    )  # fmt: skip


def test_kernels_are_found_by_their_range_and_numbers_by_their_kind(monkeypatch, capsysbinary):
    metrics = {"a__count.sum": metric(12), "a__share.pct": metric(12.5), "a__name": metric("fast"),
               "a__nothing.sum": metric(0, there=False), "a__nan.pct": metric(float("nan"))}  # fmt: skip
    actions = (
        action("warm_up", None, metrics), action("other", ("somebody's",), metrics),
        action("work", ("outer", "gpuperf:7"), metrics), action("work", ("gpuperf:8:baseline", "inner"), metrics),
    )  # fmt: skip
    chunk = SimpleNamespace(num_actions=lambda: len(actions), action_by_idx=actions.__getitem__)
    context = SimpleNamespace(num_ranges=lambda: 1, range_by_idx=lambda index: chunk)
    monkeypatch.setitem(sys.modules, "ncu_report", SimpleNamespace(load_report=lambda path: context))
    main("any.ncu-rep")
    assert json.loads(capsysbinary.readouterr().out) == [
        {"kernel": "work", "range": number, "metrics": {"a__count.sum": 12.0, "a__share.pct": 12.5}}
        for number in ("7", "8:baseline")
    ]


@pytest.mark.parametrize("content", [b"nonsense" * 100, b"", b"NVR\x00" + b"\x01" * 300], ids=["text", "empty", "cut"])
def test_a_broken_report_never_takes_the_run_along(tmp_path, content):
    """NVIDIA's module returns garbage for some of them and crashes on others."""
    path = tmp_path / "broken.ncu-rep"
    path.write_bytes(content)
    results = None
    with contextlib.suppress(CountersUnavailable):
        results = read_report(path)
    assert not results


@pytest.mark.parametrize(("module", "why"), [
    ("import os, signal\n\ndef load_report(path): os.kill(os.getpid(), signal.SIGSEGV)\n",
     "its reader ended with status -11"),
    ("import time\n\ndef load_report(path): time.sleep(60)\n", "it was not done after 1 s"),
    ("def load_report(path): raise RuntimeError('version 99 is not supported')\n",
     "RuntimeError: version 99 is not supported"),
    ("raise ModuleNotFoundError('No module named ncu_report')\n", "ModuleNotFoundError: No module named ncu_report"),
], ids=["crashes", "hangs", "too old", "missing"])  # fmt: skip
def test_a_reader_that_fails_is_told(tmp_path, monkeypatch, module, why):
    """Nor is it misled by modules of the current folder."""
    monkeypatch.setenv("GPUPERF_TESTS_COLD", "1")  # a warm process has imported the library's before
    (tmp_path / "math.py").write_text("raise SystemExit('not the library')")
    folder = tmp_path / "readers"
    folder.mkdir()
    (folder / "ncu_report.py").write_text(module)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.chdir(tmp_path)
    if "sleep" in module:
        monkeypatch.setattr(reading, "LIMIT_S", 1.0)
    with pytest.raises(CountersUnavailable) as problem:
        read_report(tmp_path / "any.ncu-rep")
    assert problem.value.reason == f"the report of ncu, any.ncu-rep, cannot be read ({why})"
    assert "the newest ncu-report" in problem.value.remedy
