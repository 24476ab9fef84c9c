"""What the doctor says of the compiler and the disassembler."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_gpuperf.doctor import toolchain
from pytest_gpuperf.doctor.findings import is_ready
from pytest_gpuperf.doctor.machine import ProgramError

NVDISASM_WORDS = "nvdisasm: NVIDIA (R) CUDA disassembler\nCuda compilation tools, release 13.5, V13.5.37\n"


def nvrtc_that_says(major: int, minor: int) -> SimpleNamespace:
    return SimpleNamespace(nvrtcVersion=lambda: (0, major, minor))


def nvrtc_without_library() -> tuple[int, int, int]:
    raise RuntimeError("Failure finding libnvrtc.so\nlong explanation")


@pytest.fixture
def equipped(machine):
    machine.install("cuda-core", "1.2.2", "cuda.core")
    machine.install("nvidia-cuda-nvrtc", "13.0.88")
    machine.modules["cuda.bindings.nvrtc"] = nvrtc_that_says(13, 0)
    machine.install("nvidia-cuda-nvdisasm", "13.5.37")
    machine.outputs["/wheels/nvdisasm"] = NVDISASM_WORDS
    return machine


def examined(machine):
    return {f.name: f for f in toolchain.probe_compiler(machine) + toolchain.probe_disassembler(machine)}


def test_the_wheels_are_enough(equipped):
    found = examined(equipped)
    assert [finding.status for finding in found.values()] == ["ok", "ok", "ok"]
    assert found["NVRTC"].detail == "13.0.88"
    assert found["nvdisasm"].detail == "13.5.37 at /wheels/nvdisasm"


def test_nothing_installed_names_the_extra(machine):
    found = examined(machine)
    assert not is_ready("static", found.values())
    assert {finding.status for finding in found.values()} == {"missing"}
    assert {finding.advice for finding in found.values()} == {"pip install 'pytest-gpuperf[static]'"}


def test_bindings_without_the_library_are_no_compiler(equipped):
    equipped.modules["cuda.bindings.nvrtc"] = SimpleNamespace(nvrtcVersion=nvrtc_without_library)
    finding = examined(equipped)["NVRTC"]
    assert (finding.status, finding.detail) == ("missing", "does not load: Failure finding libnvrtc.so")


def test_an_nvrtc_of_a_toolkit_will_do(equipped):
    del equipped.versions["nvidia-cuda-nvrtc"]
    assert examined(equipped)["NVRTC"].detail == "13.0, from a CUDA toolkit"


def test_another_nvrtc_than_the_wheel_is_warned_of(equipped):
    equipped.modules["cuda.bindings.nvrtc"] = nvrtc_that_says(12, 9)
    finding = examined(equipped)["NVRTC"]
    assert finding.status == "warn"
    assert "12.9 was loaded although the wheel 13.0.88" in finding.detail


def test_an_nvdisasm_of_a_toolkit_will_do(equipped):
    del equipped.versions["nvidia-cuda-nvdisasm"]
    equipped.programs["nvdisasm"] = "/usr/local/cuda/bin/nvdisasm"
    equipped.outputs["/usr/local/cuda/bin/nvdisasm"] = "no version here"
    assert examined(equipped)["nvdisasm"].detail == "unknown version at /usr/local/cuda/bin/nvdisasm"


def test_an_nvdisasm_that_does_not_run_is_missing(equipped):
    equipped.outputs["/wheels/nvdisasm"] = ProgramError("Exec format error")
    found = examined(equipped)
    assert not is_ready("static", found.values())
    assert "Exec format error" in found["nvdisasm"].detail
