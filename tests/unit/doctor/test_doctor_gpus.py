"""What the doctor says of drivers and GPUs."""

from __future__ import annotations

import pytest

from pytest_gpuperf.doctor.findings import ProbeResult, is_ready
from pytest_gpuperf.doctor.gpus import probe_gpus


def by_name(findings: list[ProbeResult]) -> dict[str, ProbeResult]:
    return {finding.name: finding for finding in findings}


def test_names_driver_gpu_architecture_and_uuid(gpu_machine):
    machine, plug = gpu_machine
    nvml = plug()
    found = by_name(probe_gpus(machine))
    assert found["driver"].detail == "580.95.05, CUDA 13.0"
    assert found["GPU 0"].detail == "NVIDIA H200, sm_90, GPU-0"
    assert {finding.status for finding in found.values()} == {"ok"}
    assert nvml.open == 0, "NVML is given back"


def test_lists_every_gpu(gpu_machine):
    machine, plug = gpu_machine
    plug(count=3)
    assert {"GPU 0", "GPU 1", "GPU 2"} <= by_name(probe_gpus(machine)).keys()


def test_no_pynvml_says_what_to_install(machine):
    (finding,) = probe_gpus(machine)
    assert (finding.status, finding.advice) == ("missing", "pip install nvidia-ml-py")


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlSystemGetCudaDriverVersion_v2", "nvmlDeviceGetCount"])
def test_a_driver_that_fails_means_no_time_and_its_words_are_kept(gpu_machine, call):
    machine, plug = gpu_machine
    plug().fails[call] = "Driver Not Loaded"
    findings = probe_gpus(machine)
    assert not is_ready("time", findings)
    assert is_ready("static", findings)
    assert "Driver Not Loaded" in findings[0].detail


def test_a_driver_of_cuda_11_is_too_old(gpu_machine):
    machine, plug = gpu_machine
    plug(cuda=11080)
    finding = by_name(probe_gpus(machine))["driver"]
    assert (finding.status, finding.detail) == ("missing", "580.95.05, CUDA 11.8")
    assert "CUDA 12 or newer" in finding.advice


def test_a_driver_without_a_gpu_means_no_time(gpu_machine):
    machine, plug = gpu_machine
    plug(count=0)
    findings = probe_gpus(machine)
    assert not is_ready("time", findings)
    assert by_name(findings)["GPU"].detail == "the driver lists none"


@pytest.mark.parametrize(("mig", "status"), [(0, "ok"), (None, "ok"), (1, "warn")])
def test_mig_is_warned_of(gpu_machine, mig, status):
    machine, plug = gpu_machine
    plug(mig=mig)
    assert by_name(probe_gpus(machine))["GPU 0 MIG"].status == status


def test_other_processes_are_named(gpu_machine):
    machine, plug = gpu_machine
    plug(pids=(4711, 42))
    finding = by_name(probe_gpus(machine))["GPU 0 processes"]
    assert (finding.status, finding.detail) == ("warn", "others compute here: pid 42, 4711")


def test_processes_that_nvml_hides_are_a_warning(gpu_machine):
    machine, plug = gpu_machine
    plug(pids=None)
    assert by_name(probe_gpus(machine))["GPU 0 processes"].status == "warn"


@pytest.mark.parametrize(("value", "ready"), [("1,0", True), ("", False), ("-1", False), ("none", False)])
def test_a_hidden_gpu_is_noticed(gpu_machine, value, ready):
    machine, plug = gpu_machine
    plug()
    machine.variables["CUDA_VISIBLE_DEVICES"] = value
    assert is_ready("time", probe_gpus(machine)) is ready
