"""The nvdisasm that forks: it prints what one that is started prints, and where it cannot, one is started."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import warm_nvdisasm

from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.machine_code import sass
from pytest_gpuperf.compile.machine_code.cubin import read_cubin, text_of
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.toolkit import disassembler

LOOP = """extern "C" __global__ void loop(float* a, int n)
{
    for (int i = 0; i < n; ++i) a[i] = a[i] * 1.5f + SHIFT;
}
"""


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Its own: those of the session disassemble for all tests that follow."""
    with warm_nvdisasm.servers() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield Path(variables[warm_nvdisasm.FOLDER])


@pytest.mark.skipif(shutil.which("cc") is None, reason="without a C compiler each disassembly starts a process")
def test_a_fork_prints_what_a_process_prints(servers: Path) -> None:
    for arch, shift in (("sm_80", "0.5f"), ("sm_90", "(float)i / n"), ("sm_90", "1.0f")):
        binary = compile_kernel(KernelSource(LOOP, "loop", options=(f"-DSHIFT={shift}",)), arch)
        code = text_of(read_cubin(binary.cubin).elf, binary.symbol).data
        found = warm_nvdisasm.forked(disassembler().path, arch, code)
        assert f"/*{len(code) - 16:04x}*/" in found
        assert found == warm_nvdisasm.cold(disassembler(), arch, code)
    with pytest.raises(ToolchainMissing, match="cannot disassemble code for sm_90: nvdisasm error"):
        sass.run_nvdisasm("sm_90", b"\xff" * 32)


@pytest.mark.parametrize("lacking", ["compiler", "socket"])
def test_without_a_server_each_disassembly_starts_a_process(
    servers: Path, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    if lacking == "compiler":
        monkeypatch.setenv("PATH", str(servers))
    else:
        (servers / "sm_90").touch()
    code = warm_nvdisasm.NOP * (2 if lacking == "compiler" else 3)
    assert warm_nvdisasm.forked(disassembler().path, "sm_90", code) == ""
    assert sass.run_nvdisasm("sm_90", code).count("NOP") == len(code) // 16
    assert (servers / "sm_90").read_bytes() == b""  # it was tried once
