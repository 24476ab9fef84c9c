"""Figures of kernels by their ELF sections alone, against what the compiler's log and the instructions say."""

from __future__ import annotations

from pathlib import Path

import pytest
from fat_binaries import cubin_of, fat_binary, relocatable, wheel

from pytest_gpuperf.compile.compile_errors import BadContainer
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.cubin.audited import read_built, record_of
from pytest_gpuperf.compile.cubin.changed_code import profiles_of
from pytest_gpuperf.compile.cubin.occupancy import occupancy
from pytest_gpuperf.compile.source import KernelSource

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
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "lib.so"
    path.write_bytes(fat_binary((arch, cubin_of(TEXT, "k", arch, "-DN=300")) for arch in ARCHS))
    return path


def folder_in(path: Path) -> Path:
    folder = path / "work"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", ["k", "plain", "exact"])
def test_figures_are_those_of_the_compiler_for_every_architecture(
    library: Path, tmp_path: Path, arch: str, name: str
) -> None:
    built = read_built(library, folder_in(tmp_path))
    (kernel,) = built.files["lib.so"][name][arch]
    expected = compile_kernel(KernelSource(TEXT, name, options=("-DN=300",)), arch).profile
    for figure in ("registers", "stack_bytes", "shared_bytes", "constant_bytes", "barriers", "code_bytes"):
        assert getattr(kernel, figure) == getattr(expected, figure), figure
    assert (kernel.stack_bytes > 0) == (name == "k")
    threads, why = {"k": (256, "bound"), "exact": (128, "required")}.get(
        "" if (name, arch) == ("exact", "sm_80") else name, (kernel.block_threads, "best")
    )
    assert (kernel.block_threads, kernel.block_from) == (threads, why)
    assert record_of(kernel, name, arch).occupancy == occupancy(expected, arch, threads)


def test_without_a_bound_the_block_is_the_one_that_fills_an_sm_best(library: Path, tmp_path: Path) -> None:
    built = read_built(library, folder_in(tmp_path))
    for arch in ARCHS:
        (kernel,) = built.files["lib.so"]["plain"][arch]
        reached = record_of(kernel, "plain", arch).occupancy
        assert reached is not None
        assert reached.fraction == 1


def test_instructions_are_read_where_they_are_asked_for(library: Path, tmp_path: Path) -> None:
    built = read_built(library, folder_in(tmp_path))
    found = profiles_of({arch: built.code["lib.so", "k", arch][0] for arch in ARCHS})
    for arch in ARCHS:
        expected = compile_kernel(KernelSource(TEXT, "k", options=("-DN=300",)), arch).profile
        assert found[arch].opcodes == expected.opcodes
        assert found[arch].opcodes["local_store"] > 0
        assert found[arch].code_hash == expected.code_hash


def test_equal_code_has_one_hash_under_every_name_and_beside_any_neighbour(tmp_path: Path) -> None:
    other = TEXT.replace(" k(", " renamed(").replace(" plain(", " first(").replace("*= 2", "*= 3", 1)
    path = tmp_path / "lib.fatbin"
    path.write_bytes(fat_binary([("sm_90", cubin_of(TEXT, "k", "sm_90", "-DN=300")),
                                 ("sm_90", cubin_of(other, "renamed", "sm_90", "-DN=300"))]))  # fmt: skip
    kernels = read_built(path, folder_in(tmp_path)).files["lib.fatbin"]
    codes = {name: [one.code for one in archs["sm_90"]] for name, archs in kernels.items()}
    assert codes["k"] == codes["renamed"]
    assert codes["plain"] != codes["first"]
    assert codes["exact"][0] == codes["exact"][1]
    assert len({code for several in codes.values() for code in several}) == 4


def test_an_architecture_that_is_older_than_the_limits_has_figures_and_no_occupancy(tmp_path: Path) -> None:
    cubin = bytearray(cubin_of(TEXT, "plain", "sm_90", "-DN=1"))
    assert cubin[49] == 90  # the second byte of the flags
    cubin[49] = 70
    path = tmp_path / "old.cubin"
    path.write_bytes(cubin)
    (kernel,) = read_built(path, folder_in(tmp_path)).files["old.cubin"]["plain"]["sm_70"]
    assert kernel.registers > 0
    assert (kernel.block_threads, record_of(kernel, "plain", "sm_70").occupancy) == (0, None)


def test_of_a_wheel_the_files_that_cannot_be_read_are_named_and_the_others_read(tmp_path: Path) -> None:
    cubin = cubin_of(TEXT, "k", "sm_90", "-DN=300")
    members = {
        "a.so": fat_binary([("sm_90", cubin)]), "b.so": fat_binary([("sm_90", cubin)])[:-50],
        "c.so": fat_binary([("sm_90", cubin[:200] + bytes(len(cubin) - 200))]),
    }  # fmt: skip
    built = read_built(wheel(tmp_path / "p-1-py3-none-any.whl", members), folder_in(tmp_path))
    assert [*built.files] == ["a.so"]
    assert [line.partition(":")[0] for line in built.unread] == ["b.so", "c.so"]


def test_a_wheel_of_which_nothing_can_be_read_is_an_error(tmp_path: Path) -> None:
    file = wheel(tmp_path / "p-1-py3-none-any.whl", {"a.so": fat_binary([])[:12] + bytes(90)})
    with pytest.raises(BadContainer, match=r"^a\.so: "):
        read_built(file, folder_in(tmp_path))


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


@pytest.mark.parametrize("arch", ARCHS)
def test_what_was_not_linked_has_the_shared_memory_of_what_was(tmp_path: Path, arch: str) -> None:
    found = {}
    for name, cubin in (("unlinked", relocatable(STAGED, arch)), ("linked", cubin_of(STAGED, "staged", arch))):
        path, folder = tmp_path / f"{name}.cubin", tmp_path / name
        path.write_bytes(cubin)
        folder.mkdir()
        (found[name],) = read_built(path, folder).files[path.name]["staged"][arch]
    assert found["unlinked"].shared_bytes == found["linked"].shared_bytes == 48 * 240 * 4
    assert (
        record_of(found["unlinked"], "staged", arch).occupancy == record_of(found["linked"], "staged", arch).occupancy
    )


def test_a_kernel_that_lies_in_a_file_linked_and_unlinked_counts_once_as_linked(tmp_path: Path) -> None:
    both = STAGED + STAGED[STAGED.index("extern") :].replace("staged", "object_alone")
    path = tmp_path / "lib.fatbin"
    path.write_bytes(fat_binary([("sm_90", relocatable(both)), ("sm_90", cubin_of(STAGED, "staged"))]))
    built = read_built(path, folder_in(tmp_path))
    kernels = built.files["lib.fatbin"]
    assert {name: [*archs] for name, archs in kernels.items()} == {"staged": ["sm_90"], "object_alone": ["sm_90"]}
    (code,), (figures,) = built.code["lib.fatbin", "staged", "sm_90"], kernels["staged"]["sm_90"]
    assert code.cubin.path.read_bytes() == cubin_of(STAGED, "staged")
    assert figures.shared_bytes == 48 * 240 * 4
