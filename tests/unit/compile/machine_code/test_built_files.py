"""Files that are already built: which of them hold cubins, and what they are called."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from fat_binaries import MADE_BY_NVCC, cubin_of, wheel

from pytest_gpuperf.compile.compile_errors import BadContainer
from pytest_gpuperf.compile.machine_code import built_files as module
from pytest_gpuperf.compile.machine_code.built_files import built_files, group_of, stable_name

FATBIN = (MADE_BY_NVCC / "work.fatbin").read_bytes()
PTX = (MADE_BY_NVCC / "ptx.fatbin").read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


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
    monkeypatch.setattr(module, "MOST_BYTES", 10_000)
    file = tmp_path / "p-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("a.so", FATBIN + bytes(20_000))
    with pytest.raises(BadContainer, match="it unpacks to more than"):
        list(built_files(file, folder))
    assert not any(folder.iterdir())


def test_a_wheel_with_a_file_twice_is_refused(tmp_path: Path, folder: Path) -> None:
    file = wheel(tmp_path / "p-1.0-py3-none-any.whl", {"a.so": FATBIN, "b.so": FATBIN})
    file.write_bytes(file.read_bytes().replace(b"b.so", b"a.so"))
    with pytest.raises(BadContainer, match=r"it has a\.so more than once, and which of them is installed is not known"):
        list(built_files(file, folder))


def test_of_a_library_with_a_wheel_at_its_end_both_are_read(tmp_path: Path, folder: Path) -> None:
    other = wheel(tmp_path / "p-1.0-py3-none-any.whl", {"p/b.so": FATBIN})
    file = tmp_path / "k.fatbin"
    file.write_bytes(FATBIN + other.read_bytes())
    assert [one.name for one in built_files(file, folder)] == ["", "p/b.so"]


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
