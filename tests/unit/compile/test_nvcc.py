"""Files compiled by nvcc: by a stand-in everywhere, and by nvcc itself where it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from stand_in_nvcc import StandInNvcc, found_as

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import (
    BadOption,
    CompileError,
    ToolchainMissing,
    UnknownArchitecture,
    UnknownKernel,
)
from pytest_gpuperf.compile.compiler import compile_kernel, ptx
from pytest_gpuperf.compile.nvcc import nvcc
from pytest_gpuperf.compile.nvcc_options import VARIABLES, nvcc_reads
from pytest_gpuperf.compile.nvrtc_options import canonical_options
from pytest_gpuperf.compile.source import KernelSource

KERNELS = """
template <typename T> __global__ void copy(T* out, const T* in) { out[threadIdx.x] = in[threadIdx.x]; }
__global__ void scale(float* x, float by) { assert(by > 0); x[threadIdx.x] *= by; }
"""
WHOLE = f"""#include <iostream>
#include <vector>
{KERNELS}
int main() {{
    std::vector<float> values(32);
    float* x;
    cudaMalloc(&x, 128);
    scale<<<1, 32>>>(x, 2.0f);
    std::cout << values.size();
}}
"""
ASKED = "template __global__ void copy<float>(float*, const float*);\n"


def whole(name: str, *options: str, text: str = WHOLE, **more: object) -> KernelSource:
    return KernelSource(text, name, Path("whole.cu"), options, compiler="nvcc", **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> object:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    yield
    nvcc.cache_clear()


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandInNvcc:
    folder = tmp_path / "nvcc"
    folder.mkdir()
    program = StandInNvcc(folder)
    program.makes(KERNELS + ASKED)
    found_as(monkeypatch, lambda: str(folder / "nvcc"))
    return program


@pytest.fixture
def real() -> None:
    try:
        nvcc()
    except ToolchainMissing as problem:
        pytest.skip(str(problem))


def test_a_kernel_of_a_whole_program(stand_in: StandInNvcc) -> None:
    binary = compile_kernel(whole("scale"), "sm_90")
    assert (binary.symbol, binary.toolchain, binary.arch) == ("_Z5scalePff", "nvcc 13.0.88", "sm_90")
    assert binary.profile.registers > 0
    assert binary.profile.spill_store_bytes == 0
    assert stand_in.text == f'#line 1 "<source>/whole.cu"\n{WHOLE}'


def test_options_are_those_of_nvcc(stand_in: StandInNvcc, tmp_path: Path) -> None:
    options = ("-DTILE=4", "-O3", "-Xcompiler", "-fopenmp", "-Xcompiler", "-Wall", "-std=c++20", f"-I{tmp_path}")
    compile_kernel(whole("scale", *options), "sm_90")
    given = stand_in.arguments
    assert given[:2] == ["-cubin", "--gpu-architecture=sm_90"]
    assert [one for one in given if "compiler" in one] == ["--compiler-options=-fopenmp", "--compiler-options=-Wall"]
    assert {"--define-macro=TILE=4", "-O3", "--std=c++20", f"--include-path={tmp_path}"} <= set(given)
    assert "--ftz=true" not in given


def test_an_instance_that_the_file_makes_is_taken(stand_in: StandInNvcc) -> None:
    assert compile_kernel(whole("copy<float>"), "sm_90").symbol == "_Z4copyIfEvPT_PKS0_"
    assert "gpuperf_instance" not in stand_in.text


def test_an_instance_that_the_file_does_not_make_is_asked_for(stand_in: StandInNvcc) -> None:
    stand_in.makes(KERNELS)
    stand_in.makes(KERNELS + ASKED, asked=True)
    assert compile_kernel(whole("copy<float>"), "sm_90").symbol == "_Z4copyIfEvPT_PKS0_"
    assert stand_in.text.rstrip().endswith("= &copy<float>;")


def test_an_instance_that_the_file_makes_under_another_spelling_is_listed(stand_in: StandInNvcc) -> None:
    with pytest.raises(UnknownKernel, match=r'no kernel "copy<real>" in whole.cu; there are: copy<float>, scale'):
        compile_kernel(whole("copy<real>"), "sm_90")


def test_the_cache_keeps_it_and_tells_compilers_apart(stand_in: StandInNvcc, tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "cache")
    made = compile_kernel(whole("scale", text=KERNELS), "sm_90", cache=cache)
    stand_in.refuses("FILE(1): error: it was in the cache")
    assert compile_kernel(whole("scale", text=KERNELS), "sm_90", cache=cache) == made
    by_nvrtc = compile_kernel(KernelSource(KERNELS, "scale", Path("whole.cu")), "sm_90", cache=cache)
    assert by_nvrtc.toolchain.startswith("nvrtc ")


WITH_HEADER = '#include "size.h"\n' + KERNELS
FOLDERS = [
    "-I {0}",
    "-I {0}/none,{0}",
    "-isystem={0}",
    "-isystem {0}",
    "--system-include {0}/none,{0}",
    "-include {0}/none.h,{0}/size.h",
]


def compiled_again(stand_in: StandInNvcc, source: KernelSource, cache: CompileCache) -> bool:
    """Whether nvcc was called, and not the cache asked alone."""
    stand_in.forget()
    compile_kernel(source, "sm_90", cache=cache)
    return stand_in.called


@pytest.mark.parametrize("words", FOLDERS)
def test_a_changed_header_is_compiled_again_however_its_folder_was_given(
    stand_in: StandInNvcc, tmp_path: Path, words: str
) -> None:
    cache, folder = CompileCache(tmp_path / "cache"), tmp_path / "inc"
    folder.mkdir()
    (folder / "size.h").write_text("#define SIZE 1\n")
    source = whole("scale", *words.format(folder).split(), text=WITH_HEADER)
    assert [compiled_again(stand_in, source, cache) for _ in range(2)] == [True, False]
    (folder / "size.h").write_text("#define SIZE 2\n")
    assert [compiled_again(stand_in, source, cache) for _ in range(2)] == [True, False]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CPATH", "{0}"),
        ("C_INCLUDE_PATH", "{0}/none:{0}"),
        ("CPLUS_INCLUDE_PATH", "{0}"),
        ("NVCC_PREPEND_FLAGS", "-O3 -I {0}"),
        ("NVCC_APPEND_FLAGS", "-isystem={0}"),
    ],
)
def test_a_changed_header_is_compiled_again_where_the_environment_names_its_folder(
    stand_in: StandInNvcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    cache, folder = CompileCache(tmp_path / "cache"), tmp_path / "inc"
    folder.mkdir()
    (folder / "size.h").write_text("#define SIZE 1\n")
    monkeypatch.setenv(name, value.format(folder))
    source = whole("scale", text=WITH_HEADER)
    assert [compiled_again(stand_in, source, cache) for _ in range(2)] == [True, False]
    (folder / "size.h").write_text("#define SIZE 2\n")
    assert [compiled_again(stand_in, source, cache) for _ in range(2)] == [True, False]


@pytest.mark.parametrize("name", ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "CPATH", "PTXAS_FLAGS"])
def test_a_changed_variable_of_nvcc_is_compiled_again(
    stand_in: StandInNvcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    cache = CompileCache(tmp_path / "cache")
    assert compiled_again(stand_in, whole("scale", text=KERNELS), cache)
    monkeypatch.setenv(name, "-DTILE=2")
    assert compiled_again(stand_in, whole("scale", text=KERNELS), cache)
    monkeypatch.delenv(name)
    assert not compiled_again(stand_in, whole("scale", text=KERNELS), cache)


@pytest.mark.parametrize(
    "options",
    [
        ("-Xcompiler", "-I{0}"),
        ("-Xcompiler", "-Wall,-isystem,{0}"),
        ("-Xcompiler", "@{0}/flags"),
        ("-Xcompiler", "-Wp,-include,{0}/size.h"),
        ("-I", '"{0}"'),
        ("-ldir={0}",),
        ("-forward-unknown-to-host-compiler", "-iquote={0}"),
    ],
)
def test_what_leads_to_files_that_are_not_followed_is_never_cached(
    stand_in: StandInNvcc, tmp_path: Path, options: tuple[str, ...]
) -> None:
    cache = CompileCache(tmp_path / "cache")
    source = whole("scale", *(one.format(tmp_path) for one in options), text=KERNELS)
    assert [compiled_again(stand_in, source, cache) for _ in range(2)] == [True, True]


@pytest.mark.parametrize("value", ["-I '{0}'", "TILE=2", "-optf={0}/flags", "-Xcompiler -I{0}"])
def test_flags_of_the_environment_that_are_not_followed_are_never_cached(
    stand_in: StandInNvcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    cache = CompileCache(tmp_path / "cache")
    monkeypatch.setenv("NVCC_APPEND_FLAGS", value.format(tmp_path))
    assert [compiled_again(stand_in, whole("scale", text=KERNELS), cache) for _ in range(2)] == [True, True]


def test_plain_options_of_the_hosts_compiler_are_cached(stand_in: StandInNvcc, tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "cache")
    options = ("-Xcompiler", "-fopenmp,-Wall", "-Xcompiler=-O2 -DNAME=a/b -std=gnu++17", "-ccbin", "/usr/bin/g++")
    source = whole("scale", *options, text=KERNELS)
    assert [compiled_again(stand_in, source, cache) for _ in range(2)] == [True, False]


def test_folders_are_searched_in_the_order_of_nvcc() -> None:
    options = canonical_options(["-isystem", "system", "-I", "given"], ())
    environ = {"NVCC_PREPEND_FLAGS": "-I first", "NVCC_APPEND_FLAGS": "-I after -isystem more", "CPATH": "cpath"}
    reads = nvcc_reads(options, [Path("own")], [Path("headers")], environ)
    assert [str(folder) for folder in reads.folders] == [
        "first", "own", "given", "headers", "after", "cpath", "system", "more"
    ]  # fmt: skip


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("words", FOLDERS)
def test_the_real_one_searches_folders_so_given(tmp_path: Path, words: str) -> None:
    (tmp_path / "size.h").write_text("#pragma once\n#define SIZE 2\n")
    (tmp_path / "none.h").write_text("")
    text = KERNELS + "static_assert(SIZE == 2);\n"
    text = text if "-include" in words.split() else '#include "size.h"\n' + text
    assert compile_kernel(whole("scale", *words.format(tmp_path).split(), text=text), "sm_90").symbol == "_Z5scalePff"


def test_its_ptx(stand_in: StandInNvcc) -> None:
    assert ".entry _Z5scalePff(" in ptx(whole("scale"), "sm_90")


@pytest.mark.parametrize(
    ("words", "kind", "told"),
    [
        ('FILE(7): error: identifier "y" is undefined', CompileError, r'^whole.cu:7: identifier "y" is undefined'),
        ("FILE:1:10: fatal error: no.h: No such file", CompileError, r"^whole.cu:1: no.h: No such file"),
        ('FILE(99): error: identifier "Foo" is undefined', UnknownKernel, r'says of the expression: identifier "Foo"'),
        ("nvcc fatal   : Unknown option '--foo'", BadOption, r"whole.cu: nvcc does not take .* Unknown option '--foo'"),
        ("nvcc fatal   : Value 'sm_90' is not defined for option 'gpu-architecture'", UnknownArchitecture, "to nvcc"),
        ("nvcc fatal   : Failed to preprocess host compiler properties.", ToolchainMissing, "nvcc does not work here"),
        ("ptxas error   : too much shared data", CompileError, "^whole.cu: too much shared data"),
        ('At end of source: error: expected a "}"', CompileError, '^whole.cu: At end of source: error: expected a "}"'),
        ("", CompileError, "^whole.cu: nvcc failed without a word"),
    ],
)
def test_what_it_refuses(stand_in: StandInNvcc, words: str, kind: type[Exception], told: str) -> None:
    stand_in.refuses(words)
    with pytest.raises(kind, match=told):
        compile_kernel(whole("scale"), "sm_90")


@pytest.mark.parametrize(
    "option",
    [
        "-gencode=arch=compute_90,code=sm_90",
        "-arch=sm_90",
        "-rdc=true",
        "-o=x.cubin",
        "-optf=flags.txt",
        "--options-file=flags.txt",
        "-Xptxas=--options-file=flags.txt",
        "-Xptxas=-v,-optf=flags.txt",
    ],
)
def test_options_that_would_lead_elsewhere(stand_in: StandInNvcc, option: str) -> None:
    with pytest.raises(BadOption, match="cannot be used here"):
        compile_kernel(whole("scale", option), "sm_90")


def test_without_an_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    found_as(monkeypatch, lambda: None)
    with pytest.raises(ToolchainMissing, match=r'compiler="nvcc": there is no nvcc on this machine: install a CUDA'):
        compile_kernel(whole("scale"), "sm_90")


@pytest.mark.usefixtures("real")
def test_the_real_one_compiles_a_whole_program_alike_each_time() -> None:
    made = [compile_kernel(whole("scale"), "sm_90") for _ in range(2)]
    assert made[0].symbol == "_Z5scalePff"
    assert made[0].toolchain.startswith("nvcc ")
    assert made[0].profile == made[1].profile


@pytest.mark.usefixtures("real")
def test_the_real_one_takes_an_instance_by_the_name_that_it_lists() -> None:
    """Such a name is no C++: it cannot be asked for in the file."""
    text = "static __device__ float twice(float v) { return 2 * v; }\n"
    text += "template <float (*F)(float)> __global__ void apply(float* x) { x[0] = F(x[1]); }\n"
    text += "void host(float* x) { apply<twice><<<1, 1>>>(x); }\n"
    with pytest.raises(UnknownKernel) as problem:
        compile_kernel(whole("apply", text=text), "sm_90")
    (listed,) = problem.value.available
    assert "_INTERNAL_" not in listed
    assert compile_kernel(whole(listed, text=text), "sm_90").name == listed


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("name", ["copy<float>", "copy<unsigned int>", "copy<size_t>"])
def test_the_real_one_makes_instances(name: str) -> None:
    binary = compile_kernel(whole(name), "sm_80")
    assert (binary.name, binary.arch) == (name, "sm_80")
    assert binary.profile.registers > 0


@pytest.mark.usefixtures("real")
def test_the_real_one_names_the_file_and_line_of_a_mistake() -> None:
    with pytest.raises(CompileError, match=r'^whole.cu:2: identifier "y" is undefined') as problem:
        compile_kernel(whole("work", text="\n__global__ void work(float* x) { x[0] = y; }\n"), "sm_90")
    assert "gpuperf-nvcc" not in str(problem.value)
    with pytest.raises(
        UnknownKernel, match=r'"copy<Foo>" in whole.cu; there is: scale\n.*identifier "Foo" is undefined'
    ):
        compile_kernel(whole("copy<Foo>"), "sm_90")
    with pytest.raises(UnknownArchitecture, match=r"'sm_70' is not a known architecture"):
        compile_kernel(whole("scale"), "sm_70")
