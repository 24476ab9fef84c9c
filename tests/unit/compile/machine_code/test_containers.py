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


def test_what_nvcc_compressed_is_unpacked_for_each_architecture() -> None:
    found = cubins_by_arch((MADE_BY_NVCC / "work.fatbin").read_bytes(), "work.fatbin")
    assert list(found) == ["sm_80", "sm_90"]
    for arch, (cubin,) in found.items():
        content = read_cubin(cubin)
        assert (content.arch, list(content.kernels)) == (arch, ["work"])


def test_cubins_come_out_byte_for_byte_in_the_order_of_the_container(tmp_path: Path) -> None:
    cubins = [("sm_90", cubin_of(TEXT, "k")), ("sm_80", cubin_of(TEXT, "k", "sm_80"))] * 6
    (tmp_path / "lib.fatbin").write_bytes(fat_binary(cubins))
    (tmp_path / "cubins").mkdir()
    found = extracted(tmp_path / "lib.fatbin", tmp_path / "cubins", "lib.fatbin")
    assert [(arch, path.read_bytes()) for path, arch in found] == cubins


def test_a_bare_cubin_is_its_own_only_one_and_other_files_have_none(tmp_path: Path) -> None:
    file = tmp_path / "k.cubin"
    file.write_bytes(cubin_of(TEXT, "k"))
    assert extracted(file, tmp_path, "k") == [(file, "")]
    (tmp_path / "script").write_text("#!/bin/sh\n")
    for other in (tmp_path / "script", MADE_BY_NVCC / "ptx.fatbin", Path("/bin/sh")):
        assert extracted(other, tmp_path, "other") == []


@pytest.mark.parametrize("cut", [20, 3000])
def test_a_file_that_is_cut_short_is_refused_by_its_name(cut: int) -> None:
    whole = fat_binary([("sm_90", cubin_of(TEXT, "k"))])
    with pytest.raises(BadContainer, match=r"^mine: cuobjdump \S+ cannot read it: Invalid fatbin header$"):
        cubins_by_arch(whole[:cut], "mine")


def test_a_reader_that_never_ends_is_stopped_and_one_that_is_gone_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reader = tmp_path / "cuobjdump"
    monkeypatch.setattr(containers, "container_reader", lambda: InstalledTool(reader, "1.0"))
    monkeypatch.setattr(containers, "LIMIT_S", 0.3)
    with pytest.raises(ToolchainMissing, match="cuobjdump does not run"):
        cubins_by_arch(fat_binary([]), "mine")
    reader.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid; exec sleep 60\n")
    reader.chmod(0o755)
    began = time.monotonic()
    with pytest.raises(BadContainer, match=r"^mine: cuobjdump did not end within 0.3 s"):
        cubins_by_arch(fat_binary([]), "mine")
    assert time.monotonic() - began < 10
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
