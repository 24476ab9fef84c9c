"""Taking fat binaries apart: what is in them, and what a broken or hostile one comes to."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from fat_binaries import MADE_BY_NVCC, cubin_of, fat_binary

from pytest_gpuperf.compile.compile_errors import BadContainer, ToolchainMissing
from pytest_gpuperf.compile.machine_code import containers
from pytest_gpuperf.compile.machine_code.containers import cubins_by_arch, extracted
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.toolkit import InstalledTool

TEXT = 'extern "C" __global__ void k(float* a) { a[threadIdx.x] *= 2; }'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "cubins"
    path.mkdir()
    return path


def test_what_nvcc_compressed_is_unpacked_for_each_architecture() -> None:
    found = cubins_by_arch((MADE_BY_NVCC / "work.fatbin").read_bytes(), "work.fatbin")
    assert list(found) == ["sm_80", "sm_90"]
    for arch, (cubin,) in found.items():
        content = read_cubin(cubin)
        assert (content.arch, list(content.kernels)) == (arch, ["work"])


def test_cubins_come_out_byte_for_byte_in_the_order_of_the_container(tmp_path: Path, folder: Path) -> None:
    cubins = [("sm_90", cubin_of(TEXT, "k")), ("sm_80", cubin_of(TEXT, "k", "sm_80"))] * 6
    file = tmp_path / "lib.fatbin"
    file.write_bytes(fat_binary(cubins))
    found = extracted(file, folder, "lib.fatbin")
    assert [(arch, path.read_bytes()) for path, arch in found] == cubins


def test_a_bare_cubin_is_its_own_only_one(tmp_path: Path, folder: Path) -> None:
    file = tmp_path / "k.cubin"
    file.write_bytes(cubin_of(TEXT, "k"))
    assert extracted(file, folder, "k") == [(file, "")]


@pytest.mark.parametrize("content", [b"#!/bin/sh\n", (MADE_BY_NVCC / "ptx.fatbin").read_bytes()])
def test_a_file_without_machine_code_for_gpus_has_none(tmp_path: Path, folder: Path, content: bytes) -> None:
    file = tmp_path / "other"
    file.write_bytes(content)
    assert extracted(file, folder, "other") == []


def test_a_program_of_the_host_has_none(folder: Path) -> None:
    assert extracted(Path("/bin/sh"), folder, "sh") == []


@pytest.mark.parametrize("cut", [20, 100, 3000])
def test_a_file_that_is_cut_short_is_refused_by_its_name(cut: int) -> None:
    whole = fat_binary([("sm_90", cubin_of(TEXT, "k"))])
    with pytest.raises(BadContainer, match=r"^mine: cuobjdump \S+ cannot read it: Invalid fatbin header$"):
        cubins_by_arch(whole[:cut], "mine")


def tool(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    path = folder / "cuobjdump"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(containers, "container_reader", lambda: InstalledTool(path, "1.0"))


def test_a_file_that_is_never_read_to_its_end_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool(monkeypatch, tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60")
    monkeypatch.setattr(containers, "LIMIT_S", 0.3)
    began = time.monotonic()
    with pytest.raises(BadContainer, match=r"^mine: cuobjdump did not end within 0.3 s"):
        cubins_by_arch(fat_binary([]), "mine")
    assert time.monotonic() - began < 10
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_reader_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(containers, "container_reader", lambda: InstalledTool(tmp_path / "gone", "1.0"))
    with pytest.raises(ToolchainMissing, match="gone does not run"):
        cubins_by_arch(fat_binary([]), "mine")
