"""The self-test on a real GPU: its kernels are as long as wanted, its slowdowns are true, and it ends in time."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pytest_gpuperf.selftest.kernels import FAMILIES, Probe, compile_probes, launch_of

from pytest_gpuperf.cli import command_line

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", FAMILIES)
def test_its_kernels_stay_within_their_buffers(cuda_device: Any, name: str) -> None:
    probe = Probe(FAMILIES[name], 1000, surroundings=3)
    binary = compile_probes([probe], cuda_device.facts.arch)[probe]
    launch_of(cuda_device, binary, probe.family, 1024)()
    cuda_device.synchronize()


def test_the_quick_self_test(
    cuda_device: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUPERF_MACHINE_PROFILE", str(tmp_path / "machine.json"))
    start = time.perf_counter()
    assert command_line.main(["selftest", "--quick", "--json"]) == 0
    assert time.perf_counter() - start < 120
    report = json.loads(capsys.readouterr().out)
    lengths = {one["kernel"]: one["duration_ns"] for one in report["noise"]}
    assert lengths["loop 100 us"] == pytest.approx(100_000, rel=0.02)
    assert lengths["loop 1 ms"] == pytest.approx(1_000_000, rel=0.02)
    found = [one for one in report["controls"] if one["percent"] == 5.0]
    assert all(one["slower"] == one["verdicts"] for one in found)
