"""Fat binaries taken apart, and figures of their kernels against what the compiler's log and the instructions say."""

from __future__ import annotations

import itertools
import os
import time
import zipfile
from pathlib import Path

import pytest
from fat_binaries import MADE_BY_NVCC, cubin_of, fat_binary, relocatable, wheel

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import BadContainer, ToolchainMissing
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.machine_code import audited, containers
from pytest_gpuperf.compile.machine_code.audited import (
    AuditedKernel,
    group_of,
    read_built,
    stable_name,
    with_instructions_of,
)
from pytest_gpuperf.compile.machine_code.containers import cubins_by_arch, extracted
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.occupancy import occupancy
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.toolkit import InstalledTool

SMALL = 'extern "C" __global__ void k(float* a) { a[threadIdx.x] *= 2; }'


def test_cubins_come_out_byte_for_byte_in_the_order_of_the_container(tmp_path: Path) -> None:
    cubins = [("sm_90", cubin_of(SMALL, "k")), ("sm_80", cubin_of(SMALL, "k", "sm_80"))] * 6
    compressed = cubins_by_arch((MADE_BY_NVCC / "work.fatbin").read_bytes(), "work.fatbin")
    for arch, (cubin,) in compressed.items():
        assert (read_cubin(cubin).arch, [*read_cubin(cubin).kernels]) == (arch, ["work"])
    assert list(compressed) == ["sm_80", "sm_90"]
    (tmp_path / "lib.fatbin").write_bytes(fat_binary(cubins))
    (tmp_path / "cubins").mkdir()
    found = extracted(tmp_path / "lib.fatbin", tmp_path / "cubins", "lib.fatbin")
    assert [(arch, path.read_bytes()) for path, arch in found] == cubins
    (path, _), *_ = found
    assert extracted(path, tmp_path, "k") == [(path, "")]
    for other in (MADE_BY_NVCC / "ptx.fatbin", Path("/bin/sh")):
        assert extracted(other, tmp_path, "other") == []


def test_endless_reader_is_stopped_and_a_missing_one_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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


TEXT = """
extern "C" __global__ void __launch_bounds__(256) k(float* a, int n)
{
    __shared__ float tile[300];
    float own[N];
#pragma unroll 1
    for (int i = 0; i < N; ++i) own[i] = a[i * n];
    tile[threadIdx.x] = own[n % N];
    __syncthreads();
    a[threadIdx.x] = tile[(threadIdx.x + 1) % 300];
}
extern "C" __global__ void plain(float* a) { a[threadIdx.x] *= 2; }
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __block_size__((64, 2, 1)) exact(float* a) { a[threadIdx.x] *= 2; }
#else
extern "C" __global__ void exact(float* a) { a[threadIdx.x] *= 2; }
#endif
"""
ARCHS = ("sm_80", "sm_90", "sm_120")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> CompileCache:
    return CompileCache(tmp_path_factory.mktemp("compiled"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "lib.so"
    path.write_bytes(fat_binary((arch, cubin_of(TEXT, "k", arch, "-DN=300")) for arch in ARCHS))
    return path


def kernels_of(path: Path, folder: Path) -> dict[tuple[str, str], list[AuditedKernel]]:
    """By symbol and architecture."""
    into = folder / "work"
    into.mkdir()
    found: dict[tuple[str, str], list[AuditedKernel]] = {}
    for one in read_built(path, into)[0]:
        found.setdefault((one.record.kernel, one.arch), []).append(one)
    return found


def test_figures_are_those_of_the_compiler(library: Path, tmp_path: Path, cache: CompileCache) -> None:
    """Instructions are read where they are asked for."""
    kernels = kernels_of(library, tmp_path)
    with_code = with_instructions_of([kernels["k", arch][0] for arch in ARCHS])
    for number, arch in enumerate(ARCHS):
        for name in ("k", "plain", "exact"):
            (kernel,) = kernels[name, arch]
            made = compile_kernel(KernelSource(TEXT, name, options=("-DN=300",)), arch, cache=cache).profile
            profile = kernel.record.profile
            for figure in ("registers", "stack_bytes", "shared_bytes", "constant_bytes", "barriers", "code_bytes"):
                assert getattr(profile, figure) == getattr(made, figure), figure
            assert (profile.stack_bytes > 0) == (name == "k")
            assert kernel.record.block is not None
            (threads, *_) = kernel.record.block
            required = {"k": 256, "exact": 128 if arch != "sm_80" else threads}
            assert threads == required.get(name, threads)
            assert kernel.record.occupancy == occupancy(made, arch, threads)
            assert name != "plain" or kernel.record.occupancy.fraction == 1  # the block that fills an SM best
            if name == "k":
                assert with_code[number].profile.opcodes == made.opcodes
                assert made.opcodes["local_store"] > 0


STAGED = """
__device__ float large[1 << 20];
extern "C" __global__ void __launch_bounds__(256) staged(float* a)
{
    __shared__ float tile[48 * 240];
    tile[threadIdx.x] = large[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = tile[255 - threadIdx.x];
}
"""


def test_a_kernel_that_lies_in_a_file_linked_and_unlinked_counts_once_as_linked(tmp_path: Path) -> None:
    """One that was not linked has the shared memory that it will have."""
    both = STAGED + STAGED[STAGED.index("extern") :].replace("staged", "object_alone")
    path = tmp_path / "lib.fatbin"
    path.write_bytes(fat_binary([("sm_90", relocatable(both)), ("sm_90", cubin_of(STAGED, "staged"))]))
    kernels = kernels_of(path, tmp_path)
    assert [*kernels] == [("staged", "sm_90"), ("object_alone", "sm_90")]
    (found,), (unlinked,) = kernels["staged", "sm_90"], kernels["object_alone", "sm_90"]
    assert found.cubin is not None
    assert found.cubin.read_bytes() == cubin_of(STAGED, "staged")
    assert found.record.profile.shared_bytes == unlinked.record.profile.shared_bytes == 48 * 240 * 4
    assert found.record.occupancy == unlinked.record.occupancy


# --- wheels and files by themselves ---------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "cubins"
    path.mkdir()
    return path


FATBIN = (MADE_BY_NVCC / "work.fatbin").read_bytes()
PTX = (MADE_BY_NVCC / "ptx.fatbin").read_bytes()


def test_every_file_of_a_wheel_that_holds_cubins_is_found_whatever_its_name(tmp_path: Path, folder: Path) -> None:
    """Of its members bare cubins alone stay, where they can be read."""
    bare = cubin_of('extern "C" __global__ void k(float* a) { a[0] = 1; }', "k", "sm_90")
    members = {"p/a.cpython-312-x86_64-linux-gnu.so": FATBIN, "p/b.bin": FATBIN, "p/c.py": b"FATBIN", "p/d.so": PTX,
               "p/e.cubin": bare}  # fmt: skip
    found, _ = read_built(wheel(tmp_path / "p-1.0-py3-none-any.whl", members), folder)
    assert [(one.file, one.arch) for one in found] == [
        *itertools.product(["p/a.so", "p/b.bin"], ["sm_80", "sm_90"]), ("p/e.cubin", "sm_90")
    ]  # fmt: skip
    kept = {one.cubin for one in found if one.cubin is not None}
    assert bare in {path.read_bytes() for path in kept}
    assert {path for path in folder.rglob("*") if path.is_file() and path.suffix != ".log"} == kept


def test_what_is_to_be_skipped_is_not_read(tmp_path: Path, folder: Path) -> None:
    file = wheel(tmp_path / "p-1.0-py3-none-any.whl", {"p/a.so": FATBIN, "p/libvendored.so": FATBIN[:100]})
    _, (problem,) = read_built(file, folder)
    assert problem.startswith("p/libvendored.so: cuobjdump ")
    (tmp_path / "other").mkdir()
    found, unread = read_built(file, tmp_path / "other", ["*/libvendored*.so"])
    assert ({one.file for one in found}, unread) == ({"p/a.so"}, [])
    content = bytearray(file.read_bytes())
    content[60:90] = bytes(30)
    file.write_bytes(content)
    with pytest.raises(BadContainer, match=f"^{file}: .*cannot be read: "):
        read_built(file, folder / "again")


def test_wheel_larger_than_any_disk_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path) -> None:
    monkeypatch.setattr(audited, "MOST_BYTES", 10_000)
    file = tmp_path / "p-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("a.so", FATBIN + bytes(20_000))
    with pytest.raises(BadContainer, match="it unpacks to more than"):
        read_built(file, folder)
    assert not any(folder.rglob("*.so"))


def test_all_builds_of_a_file_are_called_the_same() -> None:
    for file, name in (
        ("cupy_cuda12x-13.6.0-cp312-cp312-manylinux2014_x86_64.whl", "cupy_cuda12x"), ("libk.so", "libk.so"),
        ("p-1.0-2-py3-none-any.whl", "p"), ("k.cpython-312-x86_64-linux-gnu.so", "k.so"),
    ):  # fmt: skip
        assert group_of(Path(file)) == name
    assert stable_name("p/_C.abi3.so") == "p/_C.so"
    assert stable_name("p.libs/libk-1a2b3c4d.so.12") == "p.libs/libk.so.12"
