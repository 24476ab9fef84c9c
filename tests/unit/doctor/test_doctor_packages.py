"""What the doctor says of Python gpus."""

from __future__ import annotations

import platform

import pytest

from pytest_gpuperf.doctor import gpus, probes
from pytest_gpuperf.doctor.findings import is_ready


def test_a_complete_base_install_is_ready(machine):
    for _, distribution, module in probes.BASE_PACKAGES:
        machine.install(distribution, "9.9", module)
    assert {finding.status for finding in probes.probe_packages(machine)} == {"ok"}


@pytest.mark.parametrize(("area", "distribution", "module"), probes.BASE_PACKAGES)
def test_a_missing_base_package_takes_its_area_with_it(machine, area, distribution, module):
    for _, other, its_module in probes.BASE_PACKAGES:
        if other != distribution:
            machine.install(other, "9.9", its_module)
    assert not is_ready(area, probes.probe_packages(machine))


def test_a_package_with_a_broken_library_is_missing(machine):
    for _, distribution, module in probes.BASE_PACKAGES:
        machine.install(distribution, "9.9", module)
    machine.modules["scipy.special"] = ImportError("libopenblas.so: cannot open shared object file")
    findings = probes.probe_packages(machine)
    assert not is_ready("time", findings)
    assert any("libopenblas.so" in finding.detail for finding in findings)


def test_no_cupy_names_the_extras(machine):
    finding = gpus.probe_timing(machine)[0]
    assert not is_ready("time", [finding])
    assert "[cuda13]" in finding.advice


@pytest.mark.parametrize("distribution", gpus.CUPY_DISTRIBUTIONS)
def test_cupy_is_found_under_each_of_its_names(machine, distribution):
    machine.install(distribution, "14.2.0", "cupy")
    finding = gpus.probe_timing(machine)[0]
    assert (finding.status, finding.detail) == ("ok", "14.2.0")


def test_two_cupys_are_warned_of(machine):
    machine.install("cupy-cuda13x", "14.2.0", "cupy")
    machine.install("cupy-cuda12x", "14.2.0", "cupy")
    finding = gpus.probe_timing(machine)[0]
    assert finding.status == "warn"
    assert "cupy-cuda13x, cupy-cuda12x" in finding.detail


def test_no_cupti_is_missing_but_times_can_be_taken(machine):
    finding = gpus.probe_timing(machine)[1]
    assert finding.status == "missing"
    assert is_ready("time", [finding])
    assert "[cupti]" in finding.advice


def test_cupti_that_does_not_import_is_a_warning(machine):
    machine.install("cupti-python", "13.0.1", "cupti")
    machine.modules["cupti"] = ImportError("libcupti.so.13 not found")
    finding = gpus.probe_timing(machine)[1]
    assert finding.status == "warn"
    assert "libcupti.so.13" in finding.detail


@pytest.mark.parametrize(
    ("version", "status"), [("13.0.1", "ok"), ("13.4.0", "warn"), ("13.1rc1", "warn"), ("12", "ok")]
)
def test_cupti_newer_than_the_driver_is_warned_of(gpu_machine, version, status):
    machine, plug = gpu_machine
    nvml = plug(cuda=13000)
    machine.install("cupti-python", version, "cupti")
    assert gpus.probe_timing(machine)[1].status == status
    assert nvml.open == 0


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlSystemGetCudaDriverVersion_v2"])
def test_cupti_without_a_driver_to_compare_with_is_ok(gpu_machine, call):
    machine, plug = gpu_machine
    plug().fails[call] = "no driver"
    machine.install("cupti-python", "13.4.0", "cupti")
    assert gpus.probe_timing(machine)[1].status == "ok"


def test_cupti_without_pynvml_is_ok(machine):
    machine.install("cupti-python", "13.4.0", "cupti")
    assert gpus.probe_timing(machine)[1].status == "ok"


def test_xdist_is_welcome_but_not_needed(machine):
    assert gpus.probe_timing(machine)[2].status == "ok"
    machine.install("pytest-xdist", "3.8.0")
    assert gpus.probe_timing(machine)[2].detail == "3.8.0"


def test_python_is_named(machine):
    assert probes.probe_packages(machine)[0].detail == platform.python_version()
