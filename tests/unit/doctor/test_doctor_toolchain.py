"""What the doctor says of the compiler and the disassembler."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_gpuperf.doctor import probes
from pytest_gpuperf.doctor.findings import HostMachine, is_ready
from pytest_gpuperf.errors import GpuperfError


def failing(words: str):
    def fail(*_: object) -> None:
        raise GpuperfError(words)

    return fail


@pytest.fixture
def compiler(machine) -> SimpleNamespace:
    """As much of ``pytest_gpuperf.compile`` as the probes use, in working order."""
    profile = SimpleNamespace(registers=8, instructions=12)
    working = SimpleNamespace(
        KernelSource=SimpleNamespace,
        toolchain=lambda: "nvrtc 13.0.88",
        disassembler=lambda: SimpleNamespace(path="/wheels/nvdisasm", version="13.5.37"),
        container_reader=lambda: SimpleNamespace(path="/wheels/cuobjdump", version="13.5.37"),
        compile_kernel=lambda source, arch: SimpleNamespace(profile=profile),
    )
    modules = (probes.COMPILER, probes.TOOLKIT, probes.VERSION, probes.SOURCE)
    machine.modules.update(dict.fromkeys(modules, working))
    return working


def examined(machine):
    return {finding.name: finding for finding in probes.probe_compiler(machine)}


def test_what_works_is_named_with_its_version(machine, compiler):
    found = examined(machine)
    assert [finding.status for finding in found.values()] == ["ok", "ok", "ok", "ok"]
    assert found["NVRTC"].detail == "13.0.88"
    assert found["nvdisasm"].detail == "13.5.37 at /wheels/nvdisasm"
    assert found["test kernel"].detail == "compiled for sm_90: 8 registers, 12 instructions"


@pytest.mark.parametrize("call", ["toolchain", "disassembler", "compile_kernel"])
def test_what_fails_takes_static_evidence_with_it_and_names_the_extra(machine, compiler, call):
    setattr(compiler, call, failing("no such tool\nmany words"))
    found = examined(machine)
    assert not is_ready("static", found.values())
    (finding,) = (finding for finding in found.values() if finding.status == "missing")
    assert (finding.detail, finding.advice) == ("no such tool", "pip install 'pytest-gpuperf[static]'")


def test_a_remedy_that_the_compiler_names_is_said_once(machine, compiler):
    compiler.toolchain = failing('no compiler (No module). Install it: pip install "x[static]", or see to CUDA_PATH')
    found = examined(machine)["NVRTC"]
    assert found.detail == "no compiler (No module)"
    assert found.advice == 'pip install "x[static]", or see to CUDA_PATH'


def test_a_plugin_without_its_dependencies_is_said_to_be_broken(machine):
    found = examined(machine)
    assert not is_ready("static", found.values())
    assert {finding.status for finding in found.values()} == {"missing"}
    assert "does not import" in found["NVRTC"].detail


def test_what_takes_libraries_apart_is_named_and_nothing_else_rests_on_it(machine, compiler):
    found = examined(machine)["cuobjdump"]
    assert (found.status, found.detail) == ("ok", "13.5.37 at /wheels/cuobjdump")
    compiler.container_reader = failing("no cuobjdump")
    found = examined(machine)["cuobjdump"]
    assert (found.status, found.detail, found.advice) == (
        "missing", "no cuobjdump", "pip install 'pytest-gpuperf[static]'",
    )  # fmt: skip
    assert is_ready("static", [found])


def test_the_real_toolchain_is_found():
    assert {one.name: one.status for one in examined(HostMachine()).values()} == dict.fromkeys(
        ("NVRTC", "nvdisasm", "cuobjdump", "test kernel"), "ok"
    )
