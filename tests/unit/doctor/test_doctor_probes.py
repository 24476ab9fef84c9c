"""What the doctor says of the compiler and of Nsight Compute, and how its findings read."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.counters.run_ncu import INSTALL, CountersUnavailable, Ncu
from pytest_gpuperf.doctor import probes
from pytest_gpuperf.doctor.findings import HostMachine, ProbeResult, as_text, is_ready
from pytest_gpuperf.errors import GpuperfError


def examined() -> dict[str, ProbeResult]:
    return {finding.name: finding for finding in probes.probe_compiler(HostMachine())}


def failing(words: str):
    def fail(*_: object) -> None:
        raise GpuperfError(words)

    return fail


def test_the_real_toolchain_is_found():
    found = examined()
    assert {name: one.status for name, one in found.items()} == dict.fromkeys(
        ("Python", "NVRTC", "nvdisasm", "cuobjdump", "test kernel"), "ok"
    )
    assert " at /" in found["nvdisasm"].detail
    assert found["test kernel"].detail.startswith("compiled for sm_90: ")


@pytest.mark.parametrize(
    ("call", "name", "ready"),
    [
        ("toolchain", "NVRTC", False), ("disassembler", "nvdisasm", False), ("compile_kernel", "test kernel", False),
        ("container_reader", "cuobjdump", True),
    ],
)  # fmt: skip
def test_what_fails_names_the_extra(monkeypatch, call, name, ready):
    monkeypatch.setattr(probes, call, failing("no such tool\nmany words"))
    found = examined()
    finding = found[name]
    assert (finding.status, finding.detail) == ("missing", "no such tool")
    assert finding.advice == "pip install 'pytest-gpuperf[static]'"
    assert is_ready("static", found.values()) == ready


def test_a_remedy_that_the_compiler_names_is_said_once(monkeypatch):
    words = 'no compiler (No module). Install it: pip install "x[static]", or see to CUDA_PATH'
    monkeypatch.setattr(probes, "toolchain", failing(words))
    found = examined()["NVRTC"]
    assert (found.detail, found.advice) == (
        "no compiler (No module)", 'pip install "x[static]", or see to CUDA_PATH'
    )  # fmt: skip


# --- counters ------------------------------------------------------------------------------------


def test_ncu_and_its_reader(machine, monkeypatch):
    def none() -> Ncu:
        raise CountersUnavailable("no ncu", INSTALL)

    monkeypatch.setattr(probes, "find_ncu", none)
    first, second, _ = probes.probe_ncu(machine)
    assert not is_ready("counters", [first])
    assert "install Nsight Compute" in first.advice
    assert second.advice == "pip install 'pytest-gpuperf[ncu]'"
    monkeypatch.setattr(probes, "find_ncu", lambda: Ncu(Path("/opt/ncu"), (2025, 3, 1, 0)))
    machine.install("ncu-report", "2026.3.1", "ncu_report")
    first, second, _ = probes.probe_ncu(machine)
    assert (first.status, first.detail, second.status) == ("ok", "2025.3.1.0 at /opt/ncu", "ok")


@pytest.mark.parametrize(
    ("parameters", "capabilities", "status"),
    [
        ("RmProfilingAdminOnly: 0\n", "0000000000000000", "ok"),
        ("RmProfilingAdminOnly: 1\n", "000001ffffffffff", "ok"),
        ("RmProfilingAdminOnly: 1\n", "00000000a80425fb", "missing"),
        ("", "000001ffffffffff", "missing"),
    ],
    ids=["open", "restricted, administrator", "restricted, container", "no driver"],
)
def test_permission_follows_the_driver_and_the_capability(machine, parameters, capabilities, status):
    machine.files[probes.DRIVER_PARAMETERS] = parameters
    machine.files["/proc/self/status"] = f"Name:\tpython\nCapEff:\t{capabilities}\n"
    finding = probes.probe_ncu(machine)[2]
    assert finding.status == status
    if parameters and status == "missing":
        assert "NVreg_RestrictProfilingToAdminUsers=0" in finding.advice
        assert "--cap-add=SYS_ADMIN" in finding.advice


# --- how findings read ---------------------------------------------------------------------------

FINDINGS = [
    ProbeResult("static", "NVRTC", "ok", "13.0.88"),
    ProbeResult("time", "driver", "missing", "none", "install one", required=True),
    ProbeResult("time", "CUPTI", "missing", "not installed", "pip install it"),
    ProbeResult("counters", "ncu", "warn", "odd"),
]


def test_only_a_required_thing_that_is_missing_spoils_an_area():
    assert is_ready("static", FINDINGS)
    assert not is_ready("time", FINDINGS)
    assert is_ready("time", FINDINGS[2:])
    assert is_ready("counters", FINDINGS)


def test_text_has_a_line_per_finding_its_advice_and_a_closing_line():
    assert as_text(FINDINGS, "1.2.3").splitlines() == [
        "pytest-gpuperf 1.2.3",
        "",
        "Static evidence (registers, spills, occupancy; needs no GPU)",
        "  ok       NVRTC   13.0.88",
        "",
        "Time",
        "  missing  driver  none",
        "                   -> install one",
        "  missing  CUPTI   not installed",
        "                   -> pip install it",
        "",
        "Counters (Nsight Compute)",
        "  warn     ncu     odd",
        "",
        "Can be measured here: static yes, time no, counters yes",
    ]


def test_the_real_machine_says_what_is_there(tmp_path):
    machine = HostMachine()
    assert (machine.version("pytest"), machine.version("no-such-distribution")) == (pytest.__version__, None)
    (tmp_path / "params").write_text("A: 1\n", encoding="utf-8")
    assert (machine.read(str(tmp_path / "params")), machine.read(str(tmp_path / "none"))) == ("A: 1\n", "")
    with pytest.raises(ImportError):
        machine.load("no_such_module")
