"""What the doctor says of Nsight Compute and of the right to read counters."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.counters.run_ncu import Ncu
from pytest_gpuperf.doctor import probes
from pytest_gpuperf.doctor.findings import is_ready


def test_no_ncu_is_missing(machine):
    finding = probes.probe_ncu(machine)[0]
    assert not is_ready("counters", [finding])
    assert "install Nsight Compute" in finding.advice


def test_ncu_is_named_with_version_and_path(machine):
    machine.profiler = Ncu(Path("/opt/ncu"), (2025, 3, 1, 0))
    finding = probes.probe_ncu(machine)[0]
    assert (finding.status, finding.detail) == ("ok", "2025.3.1.0 at /opt/ncu")


def test_the_report_reader_is_an_extra(machine):
    finding = probes.probe_ncu(machine)[1]
    assert finding.advice == "pip install 'pytest-gpuperf[ncu]'"
    machine.install("ncu-report", "2026.3.1")
    assert probes.probe_ncu(machine)[1].status == "ok"


@pytest.mark.parametrize(
    ("parameters", "capabilities", "status"),
    [
        ("RmProfilingAdminOnly: 0\n", "0000000000000000", "ok"),
        ("RmProfilingAdminOnly: 1\n", "000001ffffffffff", "ok"),
        ("RmProfilingAdminOnly: 1\n", "00000000a80425fb", "missing"),
        ("RegistryDwords: \"\"\n", "000001ffffffffff", "warn"),
        (None, "000001ffffffffff", "missing"),
    ],
    ids=["open", "restricted, administrator", "restricted, container", "not named", "no driver"],
)  # fmt: skip
def test_permission_follows_the_driver_and_the_capability(machine, parameters, capabilities, status):
    if parameters is not None:
        machine.files[probes.DRIVER_PARAMETERS] = parameters
    machine.files["/proc/self/status"] = f"Name:\tpython\nCapEff:\t{capabilities}\n"
    finding = probes.probe_ncu(machine)[2]
    assert finding.status == status


def test_no_permission_says_what_to_do_on_the_host_and_in_a_container(machine):
    machine.files[probes.DRIVER_PARAMETERS] = "RmProfilingAdminOnly: 1\n"
    finding = probes.probe_ncu(machine)[2]
    assert "NVreg_RestrictProfilingToAdminUsers=0" in finding.advice
    assert "--cap-add=SYS_ADMIN" in finding.advice
    assert not is_ready("counters", [finding])
