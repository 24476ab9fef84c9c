"""NVML: what it tells, what it does not, and which processes are strangers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from device_samples import FakeNvml

from pytest_gpuperf.device.facts import Nvml, slug, strangers
from pytest_gpuperf.model.device_facts import DeviceState

REFUSED = FakeNvml.NVMLError("not supported")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """init(1) - shell(10) - controller(20) - workers(30, 31), children (40, 41); another job of the shell(50)."""
    for pid, parent, group in (
        (1, 0, 1), (10, 1, 10), (20, 10, 20), (30, 20, 20), (31, 20, 20), (40, 30, 40), (41, 31, 41), (50, 10, 50),
    ):  # fmt: skip
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a (very) odd name) S {parent} {group} 1 0")
    return tmp_path


def test_the_state_is_what_nvml_says() -> None:
    state = Nvml(FakeNvml("GPU-11", nvmlDeviceGetCurrentClocksEventReasons=0x65), "11").state()
    assert state == DeviceState(
        sm_clock_mhz=1980,
        throttle_reasons=("power cap", "software thermal slowdown", "hardware thermal slowdown"),
    )  # fmt: skip


@pytest.mark.parametrize(
    "library",
    [
        FakeNvml("GPU-11", nvmlInit=REFUSED),
        FakeNvml("GPU-another"),
    ],
)
def test_what_nvml_does_not_tell_is_none_and_no_error(library: Any) -> None:
    state = Nvml(library, "11").state()
    assert state.sm_clock_mhz is None
    assert state.other_processes == ()


@pytest.mark.parametrize("own", [20, 30, 40])
def test_processes_of_this_run_are_no_strangers(own: int, proc: Path) -> None:
    """Be it the controller, a worker, or a child with a group of its own, which has no cousins."""
    cousins = () if own == 40 else (31, 41)
    assert strangers([10, 20, 30, *cousins, 40, 50, 50, 99], own=own, proc=proc) == (50,)


def test_strangers_are_in_the_state() -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as ours:
        nvml = Nvml(FakeNvml("GPU-11", pids=[1, os.getpid(), os.getppid(), ours.pid, 999_999_999]), "11")
        found = nvml.state().other_processes
        ours.kill()
    assert found == ()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("NVIDIA H200", "nvidia-h200"), ("NVIDIA RTX A6000", "nvidia-rtx-a6000"),
     ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "nvidia-h100-80gb-hbm3-mig-1g-10gb")],
)  # fmt: skip
def test_a_slug_is_a_file_name(name: str, wanted: str) -> None:
    assert slug(name) == wanted
