"""Taking fat binaries apart: what is in them, and what a broken or hostile one comes to."""

from __future__ import annotations

import os
import re
import time
import zipfile
from pathlib import Path

import pytest
from fat_binaries import MADE_BY_NVCC, cubin_of, fat_binary, wheel

from pytest_gpuperf.compile.compile_errors import BadContainer, ToolchainMissing
from pytest_gpuperf.compile.machine_code import containers
from pytest_gpuperf.compile.machine_code.containers import built_files, cubins_by_arch, extracted, group_of, stable_name
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
    assert [(one.arch, one.path.read_bytes()) for one in found] == cubins


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


# --- wheels and files by themselves ---------------------------------------------------------------

FATBIN = (MADE_BY_NVCC / "work.fatbin").read_bytes()
PTX = (MADE_BY_NVCC / "ptx.fatbin").read_bytes()


def test_every_file_of_a_wheel_that_holds_cubins_is_found_whatever_its_name(tmp_path: Path, folder: Path) -> None:
    members = {"p/a.cpython-312-x86_64-linux-gnu.so": FATBIN, "p/b.bin": FATBIN, "p/c.py": b"FATBIN", "p/d.so": PTX}
    found = list(built_files(wheel(tmp_path / "p-1.0-py3-none-any.whl", members), folder))
    assert [one.name for one in found] == ["p/a.so", "p/b.bin"]
    assert [cubin.arch for one in found for cubin in one.cubins] == ["sm_80", "sm_90"] * 2
    assert all(cubin.path.is_file() for one in found for cubin in one.cubins)


def test_bare_cubins_of_a_wheel_stay_where_they_can_be_read_and_other_members_go(tmp_path: Path, folder: Path) -> None:
    cubins = [
        cubin_of('extern "C" __global__ void k(float* a) { a[0] = N; }', "k", "sm_90", f"-DN={n}") for n in (1, 2)
    ]
    members = {"p/a.cubin": cubins[0], "p/b.so": FATBIN, "p/c.cubin": cubins[1]}
    first, library, second = built_files(wheel(tmp_path / "p-1.0-py3-none-any.whl", members), folder)
    assert [one.path.read_bytes() for built in (first, second) for one in built.cubins] == cubins
    kept = {cubin.path for built in (first, library, second) for cubin in built.cubins}
    assert {path for path in folder.rglob("*") if path.is_file() and path.suffix != ".log"} == kept


def test_what_is_to_be_skipped_is_not_read(tmp_path: Path, folder: Path) -> None:
    file = wheel(tmp_path / "p-1.0-py3-none-any.whl", {"p/a.so": FATBIN, "p/libvendored.so": FATBIN[:100]})
    problems = [one.problem for one in built_files(file, folder)]
    assert problems[0] == ""
    assert re.fullmatch(r"p/libvendored\.so: cuobjdump \S+ cannot read it: Invalid fatbin header", problems[1])
    (tmp_path / "other").mkdir()
    found = list(built_files(file, tmp_path / "other", ["*/libvendored*.so"]))
    assert [(one.name, one.problem) for one in found] == [("p/a.so", "")]


def test_a_file_by_itself(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "k.fatbin").write_bytes(FATBIN)
    (found,) = built_files(tmp_path / "k.fatbin", folder)
    assert (found.name, [cubin.arch for cubin in found.cubins]) == ("", ["sm_80", "sm_90"])


def encrypted(path: Path) -> None:
    wheel(path, {"a.so": FATBIN})
    content = bytearray(path.read_bytes())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(header) + flags] |= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    wheel(path, {"a.so": FATBIN * 50})
    content = bytearray(path.read_bytes())
    content[60:90] = bytes(30)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "it is a folder: name the files in it"),
        (lambda path: path.write_bytes(b""), "it is empty"),
        (lambda path: path.write_bytes(b"text"), "there is no machine code for GPUs in it"),
        (lambda path: path.write_bytes(PTX), "there is no machine code for GPUs in it"),
        (lambda path: wheel(path, {"a.py": b"1"}), "there is no machine code for GPUs in it"),
        (encrypted, "this wheel cannot be unpacked: .*encrypted"),
        (cut, "this wheel cannot be unpacked: "),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_with_the_reason(tmp_path: Path, folder: Path, make, words: str) -> None:
    path = tmp_path / "p-1.0-py3-none-any.whl"
    make(path)
    with pytest.raises(BadContainer, match=f"^{path}: .*{words}"):
        list(built_files(path, folder))


def test_a_wheel_that_says_it_unpacks_to_more_than_any_disk_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path
) -> None:
    monkeypatch.setattr(containers, "MOST_BYTES", 10_000)
    file = tmp_path / "p-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("a.so", FATBIN + bytes(20_000))
    with pytest.raises(BadContainer, match="it unpacks to more than"):
        list(built_files(file, folder))
    assert not any(folder.iterdir())


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("cupy_cuda12x-13.6.0-cp312-cp312-manylinux2014_x86_64.whl", "cupy_cuda12x"),
        ("p-1.0-2-py3-none-any.whl", "p"),
        ("libk.so", "libk.so"),
        ("k.cpython-312-x86_64-linux-gnu.so", "k.so"),
    ],
)
def test_all_builds_of_a_file_are_called_the_same(file: str, name: str) -> None:
    assert group_of(Path(file)) == name


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("cupy/cuda/cub.cpython-312-x86_64-linux-gnu.so", "cupy/cuda/cub.so"),
        ("p/_C.abi3.so", "p/_C.so"),
        ("p.libs/libk-1a2b3c4d.so.12", "p.libs/libk.so.12"),
        ("p/libk-nvrtc.so", "p/libk-nvrtc.so"),
    ],
)
def test_names_of_files_have_no_tags_and_hashes(file: str, name: str) -> None:
    assert stable_name(file) == name
