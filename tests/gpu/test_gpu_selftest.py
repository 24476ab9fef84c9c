"""The self-test on a real GPU: its kernels have about the lengths wanted, and it ends in time."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_gpuperf.cli import command_line
from pytest_gpuperf.selftest.selftest_report import SelftestReport

pytestmark = pytest.mark.gpu


def test_quick_self_test_finds_known_slowdowns_within_a_minute(cuda_device: Any, tmp_path: Path) -> None:
    start, file = time.perf_counter(), tmp_path / "report.json"
    assert command_line.main(["selftest", "--quick", "--json", str(file)]) == 0
    assert time.perf_counter() - start < 60
    report = msgspec.json.decode(file.read_bytes(), type=SelftestReport)
    assert report.timers
    for timer in report.timers:
        times = {one.kernel: one.duration_ns for one in timer.kernels}
        assert 0.5 < times["long loop"] / 100_000 < 2
        for kernel in timer.kernels:
            if kernel.kernel != "short loop":
                same, _, slower = kernel.controls
                assert same.slower == 0
                assert slower.slower == slower.comparisons
                assert math.isclose(slower.ratio, 1.02, abs_tol=0.006)
