"""What the doctor says of drivers, GPUs, CuPy and CUPTI."""

from __future__ import annotations

import pytest

from pytest_gpuperf.doctor import gpus
from pytest_gpuperf.doctor.findings import ProbeResult, is_ready


@pytest.fixture(autouse=True)
def visible(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def found(machine) -> dict[str, ProbeResult]:
    return {finding.name: finding for finding in gpus.probe_gpus(machine)}


def test_driver_gpus_architecture_and_uuid_are_named(machine):
    nvml = machine.plug(count=3)
    findings = found(machine)
    assert findings["driver"].detail == "580.95.05, CUDA 13.0"
    assert findings["GPU 0"].detail == "NVIDIA H200, sm_90, GPU-0"
    assert list(findings) == ["driver", "GPU 0", "GPU 1", "GPU 2"]
    assert {finding.status for finding in findings.values()} == {"ok"}
    assert nvml.open == 0, "NVML is given back"


def test_no_pynvml_says_what_to_install(machine):
    (finding,) = gpus.probe_gpus(machine)
    assert (finding.status, finding.advice) == ("missing", "pip install nvidia-ml-py")


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlSystemGetCudaDriverVersion_v2", "nvmlDeviceGetCount"])
def test_a_driver_that_fails_means_no_time_and_its_words_are_kept(machine, call):
    machine.plug().fails = call
    findings = gpus.probe_gpus(machine)
    assert (is_ready("time", findings), is_ready("static", findings)) == (False, True)
    assert "Driver Not Loaded" in findings[0].detail


@pytest.mark.parametrize(
    ("facts", "name", "status", "words"),
    [
        ({"cuda": 11080}, "driver", "missing", "580.95.05, CUDA 11.8 too old: CUDA 12 or newer is needed"),
        ({"count": 0}, "GPU", "missing", "the driver lists none"),
        ({"mig": 1}, "GPU 0 MIG", "warn", "on a slice shares memory bandwidth"),
        ({"pids": (4711, 42)}, "GPU 0 processes", "warn", "others compute here: pid 42, 4711"),
    ],
)
def test_a_machine_that_cannot_be_trusted_is_named(machine, facts, name, status, words):
    machine.plug(**facts)
    finding = found(machine)[name]
    assert finding.status == status
    assert words in f"{finding.detail} {finding.advice}"
    assert is_ready("time", [finding]) == (status == "warn")


def test_what_nvml_does_not_tell_is_left_out(machine):
    machine.plug(mig=None, pids=None)
    assert list(found(machine)) == ["driver", "GPU 0"]


@pytest.mark.parametrize(("value", "ready"), [("1,0", True), ("", False), ("-1", False), ("none", False)])
def test_a_hidden_gpu_is_noticed(machine, monkeypatch, value, ready):
    machine.plug()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert is_ready("time", gpus.probe_gpus(machine)) is ready


# --- CuPy and CUPTI ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("installed", "status", "words"),
    [
        ((), "missing", "pip install 'pytest-gpuperf[cuda13]'"),
        (("cupy-cuda13x",), "ok", "cupy-cuda13x 14.2.0"),
        (("cupy-cuda12x",), "ok", "cupy-cuda12x 14.2.0"),
        (("cupy",), "ok", "cupy 14.2.0"),
        (("cupy-cuda12x", "cupy-cuda13x"), "warn", "installed twice: cupy-cuda13x, cupy-cuda12x"),
    ],
)
def test_cupy_is_found_under_each_of_its_names(machine, installed, status, words):
    for distribution in installed:
        machine.install(distribution, "14.2.0", "cupy")
    finding = gpus.probe_timing(machine)[0]
    assert finding.status == status
    assert words in f"{finding.detail} {finding.advice}"


def test_a_cupy_that_does_not_import_is_missing(machine):
    machine.install("cupy", "14.2.0", "cupy")
    machine.modules["cupy"] = ImportError("libcudart.so.13 not found")
    finding = gpus.probe_timing(machine)[0]
    assert "libcudart.so.13" in finding.detail
    assert not is_ready("time", [finding])


def test_times_can_be_taken_without_cupti(machine):
    finding = gpus.probe_timing(machine)[1]
    assert (finding.status, is_ready("time", [finding])) == ("missing", True)
    assert "[cupti]" in finding.advice
    machine.install("cupti-python", "13.0.1", "cupti")
    machine.modules["cupti"] = ImportError("libcupti.so.13 not found")
    finding = gpus.probe_timing(machine)[1]
    assert finding.status == "warn"
    assert "libcupti.so.13" in finding.detail


@pytest.mark.parametrize(
    ("version", "status"), [("13.0.1", "ok"), ("13.4.0", "warn"), ("13.1rc1", "warn"), ("12", "ok")]
)
def test_cupti_newer_than_the_driver_is_warned_of(machine, version, status):
    machine.install("cupti-python", version, "cupti")
    assert gpus.probe_timing(machine)[1].status == "ok"  # no driver to compare with
    nvml = machine.plug(cuda=13000)
    assert gpus.probe_timing(machine)[1].status == status
    assert nvml.open == 0


def test_xdist_is_welcome_but_not_needed(machine):
    assert gpus.probe_timing(machine)[2].status == "ok"
    machine.install("pytest-xdist", "3.8.0", "xdist")
    assert gpus.probe_timing(machine)[2].detail == "3.8.0"
