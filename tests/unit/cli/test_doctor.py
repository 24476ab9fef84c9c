"""What the doctor says of drivers, GPUs, CuPy and CUPTI, of the compiler and of Nsight Compute."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import pytest
from nvml_samples import FakeNvml, NotSupported, NVMLError

from pytest_gpuperf.cli import doctor_command as doctor
from pytest_gpuperf.cli.doctor_command import ProbeResult, as_text, is_ready
from pytest_gpuperf.counters.run_ncu import INSTALL, CountersUnavailable, Ncu
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.model import __version__


class Machine:
    """A machine with nothing on it; tests put things there."""

    def __init__(self, folder: Path) -> None:
        self.versions: dict[str, str] = {}
        self.modules: dict[str, ModuleType] = {}
        self.parameters, self.status = folder / "params", folder / "status"

    def install(self, distribution: str, version: str, module: str) -> None:
        self.versions[distribution], self.modules[module] = version, ModuleType(module)

    def plug(self, *uuids: str, **answers: Any) -> FakeNvml:
        """Plug GPUs into it."""
        self.modules["pynvml"] = nvml = FakeNvml(*uuids, **answers)
        return nvml

    def load(self, module: str) -> ModuleType:
        if module not in self.modules:
            raise ImportError(f"lib{module}.so.13 not found")
        return self.modules[module]


@pytest.fixture
def machine(monkeypatch, tmp_path) -> Machine:
    found = Machine(tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(doctor, "installed", lambda distribution: found.versions.get(distribution, ""))
    monkeypatch.setattr(doctor, "import_module", found.load)
    monkeypatch.setattr(doctor, "DRIVER_PARAMETERS", str(found.parameters))
    monkeypatch.setattr(doctor, "OWN_STATUS", str(found.status))
    return found


def found() -> dict[str, ProbeResult]:
    return {finding.name: finding for finding in doctor.probe_gpus()}


def words(finding: ProbeResult) -> str:
    return f"{finding.status}: {finding.detail} {finding.advice}"


def test_driver_gpus_architecture_and_uuid_are_named_and_a_hidden_gpu_noticed(machine, monkeypatch):
    nvml = machine.plug("GPU-0", "GPU-1", "GPU-2")
    findings = found()
    assert findings["driver"].detail == "580.95.05, CUDA 13.0"
    assert findings["GPU 0"].detail == "NVIDIA H200, sm_90, GPU-0"
    assert list(findings) == ["driver", "GPU 0", "GPU 1", "GPU 2"]
    assert {finding.status for finding in findings.values()} == {"ok"}
    assert not nvml.is_open, "NVML is given back"
    silent = NotSupported("Not Supported")
    machine.plug("GPU-0", DeviceGetMigMode=silent, DeviceGetComputeRunningProcesses=silent)
    assert list(found()) == ["driver", "GPU 0"], "what NVML does not tell is left out"
    for value, ready in (("1,0", True), ("", False), ("-1", False), ("none", False)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        assert is_ready("time", doctor.probe_gpus()) is ready


def test_a_driver_that_is_not_there_or_fails_means_no_time_and_its_words_are_kept(machine):
    for call in ("Init", "SystemGetCudaDriverVersion_v2", "DeviceGetCount"):
        machine.plug("GPU-0", **{call: NVMLError("Driver Not Loaded")})
        findings = doctor.probe_gpus()
        assert (is_ready("time", findings), is_ready("static", findings)) == (False, True)
        assert "Driver Not Loaded" in findings[0].detail


@pytest.mark.parametrize(("facts", "name", "says"), [
    ({"SystemGetCudaDriverVersion_v2": 11080}, "driver", "missing: 580.95.05, CUDA 11.8 too old: CUDA 12 or newer"),
    ({"DeviceGetCount": 0}, "GPU", "missing: the driver lists none"),
    ({"DeviceGetMigMode": (1, 1)}, "GPU 0 MIG", "warn: on a slice shares memory bandwidth"),
    ({"pids": (4711, 42)}, "GPU 0 processes", "warn: other processes compute here: pid 42, 4711"),
])  # fmt: skip
def test_a_machine_that_cannot_be_trusted_is_named(machine, facts, name, says):
    machine.plug("GPU-0", **facts)
    finding = found()[name]
    assert words(finding).startswith(says)
    assert is_ready("time", [finding]) == (finding.status == "warn")


@pytest.mark.parametrize(("installed", "says"), [
    ((), "missing: not installed pip install 'pytest-gpuperf[cuda13]'"),
    (("cupy-cuda13x",), "ok: cupy-cuda13x 14.2.0"), (("cupy-cuda12x",), "ok: cupy-cuda12x 14.2.0"),
    (("cupy",), "ok: cupy 14.2.0"),
    (("cupy-cuda12x", "cupy-cuda13x"), "warn: installed twice: cupy-cuda13x, cupy-cuda12x"),
])  # fmt: skip
def test_cupy_is_found_under_each_of_its_names(machine, installed, says):
    for distribution in installed:
        machine.install(distribution, "14.2.0", "cupy")
    assert words(doctor.probe_cupy()[0]).startswith(says)


def test_a_package_that_does_not_import_is_told_with_the_linkers_words(machine):
    (cupti,) = doctor.probe_cupti()
    assert (cupti.status, is_ready("time", [cupti]), "[cupti]" in cupti.advice) == ("missing", True, True)
    for distribution, module in (("cupy", "cupy"), ("cupti-python", "cupti")):
        machine.install(distribution, "13.0.1", module)
        del machine.modules[module]
    (cupy,), (cupti,) = doctor.probe_cupy(), doctor.probe_cupti()
    assert ("libcupy.so.13" in cupy.detail, is_ready("time", [cupy])) == (True, False)
    assert ("libcupti.so.13" in cupti.detail, cupti.status) == (True, "warn")


@pytest.mark.parametrize(("found", "status"), [("13.0.1", "ok"), ("13.4.0", "warn"), ("13.1rc1", "warn"), ("12", "ok")])
def test_cupti_newer_than_the_driver_is_warned_of(machine, found, status):
    machine.install("cupti-python", found, "cupti")
    assert doctor.probe_cupti()[0].status == "ok"  # no driver to compare with
    nvml = machine.plug("GPU-0")
    assert (doctor.probe_cupti()[0].status, nvml.is_open) == (status, False)


# --- the compiler --------------------------------------------------------------------------------


def examined() -> dict[str, ProbeResult]:
    return {finding.name: finding for finding in doctor.probe_compiler()}


def test_the_real_toolchain_is_found():
    found = examined()
    assert list(found) == ["Python", "NVRTC", "nvdisasm", "cuobjdump", "test kernel"]
    assert {one.status for one in found.values()} == {"ok"}
    assert " at /" in found["nvdisasm"].detail
    assert found["test kernel"].detail.startswith("compiled for sm_90: ")


@pytest.mark.parametrize(("call", "name", "ready"), [
    ("toolchain", "NVRTC", False), ("disassembler", "nvdisasm", False), ("compile_kernel", "test kernel", False),
    ("container_reader", "cuobjdump", True),
])  # fmt: skip
def test_what_fails_names_the_extra_or_the_remedy_that_the_message_has(monkeypatch, call, name, ready):
    remedy = 'pip install "x[static]", or see to CUDA_PATH'
    for message, detail, advice in (
        ("no such tool\nmany words", "no such tool", "pip install 'pytest-gpuperf[static]'"),
        (f"no compiler (No module). Install it: {remedy}", "no compiler (No module)", remedy),
    ):
        monkeypatch.setattr(doctor, call, Mock(side_effect=GpuperfError(message)))
        finding = examined()[name]
        assert (finding.status, finding.detail, finding.advice) == ("missing", detail, advice)
        assert is_ready("static", [finding]) == ready


# --- counters ------------------------------------------------------------------------------------


def test_ncu_and_its_reader(machine, monkeypatch):
    monkeypatch.setattr(doctor, "find_ncu", Mock(side_effect=CountersUnavailable("no ncu", INSTALL)))
    first, second, _ = doctor.probe_ncu()
    assert not is_ready("counters", [first])
    assert "install Nsight Compute" in first.advice
    assert second.advice == "pip install 'pytest-gpuperf[ncu]'"
    monkeypatch.setattr(doctor, "find_ncu", lambda: Ncu(Path("/opt/ncu"), (2025, 3, 1, 0)))
    machine.install("ncu-report", "2026.3.1", "ncu_report")
    first, second, _ = doctor.probe_ncu()
    assert (first.status, first.detail, second.status) == ("ok", "2025.3.1.0 at /opt/ncu", "ok")


@pytest.mark.parametrize(("parameters", "capabilities", "status"), [
    ("RmProfilingAdminOnly: 0\n", "0000000000000000", "ok"),
    ("RmProfilingAdminOnly: 1\n", "000001ffffffffff", "ok"),
    ("RmProfilingAdminOnly: 1\n", "00000000a80425fb", "missing"),
    ("", "000001ffffffffff", "missing"),
], ids=["open", "restricted, administrator", "restricted, container", "no driver"])  # fmt: skip
def test_permission_follows_the_driver_and_the_capability(machine, parameters, capabilities, status):
    machine.parameters.write_text(parameters)
    machine.status.write_text(f"Name:\tpython\nCapEff:\t{capabilities}\n")
    finding = doctor.probe_ncu()[2]
    assert finding.status == status
    if parameters and status == "missing":
        assert "NVreg_RestrictProfilingToAdminUsers=0" in finding.advice
        assert "--cap-add=SYS_ADMIN" in finding.advice


# --- how findings read ---------------------------------------------------------------------------


def test_text_has_a_line_per_finding_its_advice_and_a_closing_line():
    """Only a required thing that is missing spoils an area."""
    findings = [
        ProbeResult("static", "NVRTC", "ok", "13.0.88"),
        ProbeResult("time", "driver", "missing", "none", "install one", required=True),
        ProbeResult("time", "CUPTI", "missing", "not installed"),
    ]
    assert as_text(findings).splitlines() == [
        f"pytest-gpuperf {__version__}", "",
        "Static evidence (registers, spills, occupancy; needs no GPU)", "  ok       NVRTC   13.0.88", "",
        "Time", "  missing  driver  none", "                   -> install one", "  missing  CUPTI   not installed", "",
        "Counters (Nsight Compute)", "", "Can be measured here: static yes, time no, counters yes",
    ]  # fmt: skip
    assert is_ready("time", findings[2:])
