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
    UnknownKernel,
)
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.nvcc import VARIABLES, nvcc
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


def compiled_again(stand_in: StandInNvcc, source: KernelSource, cache: CompileCache) -> bool:
    """Whether nvcc was called, and not the cache asked alone."""
    stand_in.forget()
    compile_kernel(source, "sm_90", cache=cache)
    return stand_in.called


def test_a_changed_header_that_nvcc_read_is_compiled_again(stand_in: StandInNvcc, tmp_path: Path) -> None:
    cache, header = CompileCache(tmp_path / "cache"), tmp_path / "a folder" / "size.h"
    header.parent.mkdir()
    header.write_text("#define SIZE 1\n")
    stand_in.reads(tmp_path / "other.h", header)
    (tmp_path / "other.h").write_text("")
    source = whole("scale", text=KERNELS)
    assert [compiled_again(stand_in, source, cache) for _ in range(2)] == [True, False]
    header.write_text("#define SIZE 2\n")
    assert [compiled_again(stand_in, source, cache) for _ in range(2)] == [True, False]
    header.unlink()
    assert compiled_again(stand_in, source, cache)


@pytest.mark.parametrize("name", ["NVCC_APPEND_FLAGS", "CPATH"])
def test_a_changed_variable_of_nvcc_is_compiled_again(
    stand_in: StandInNvcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    cache = CompileCache(tmp_path / "cache")
    assert compiled_again(stand_in, whole("scale", text=KERNELS), cache)
    monkeypatch.setenv(name, "-DTILE=2")
    assert compiled_again(stand_in, whole("scale", text=KERNELS), cache)
    monkeypatch.delenv(name)
    assert not compiled_again(stand_in, whole("scale", text=KERNELS), cache)


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("words", ["-Xcompiler -I{0}", "-include {0}/none.h,{0}/size.h", "CPATH={0}"])
def test_the_real_one_tells_each_header_that_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    cache, folder = CompileCache(tmp_path / "cache"), tmp_path / "inc"
    folder.mkdir()
    (folder / "none.h").write_text("")
    if words.startswith("CPATH="):
        monkeypatch.setenv("CPATH", str(folder))
    options = [] if words.startswith("CPATH=") else words.format(folder).split()
    text = KERNELS.replace("by;", "SIZE;")
    text = text if "-include" in options else '#include "size.h"\n' + text
    codes = []
    for size in (2, 2, 3):
        (folder / "size.h").write_text(f"#pragma once\n#define SIZE {size}.0f\n")
        codes.append(compile_kernel(whole("scale", *options, text=text), "sm_90", cache=cache).profile.code_hash)
    assert codes[0] == codes[1] != codes[2]


@pytest.mark.parametrize(
    ("words", "kind", "told"),
    [
        ('FILE(7): error: identifier "y" is undefined', CompileError, r'^whole.cu:7: identifier "y" is undefined'),
        ("FILE:1:10: fatal error: no.h: No such file", CompileError, r"^whole.cu:1: no.h: No such file"),
        ('FILE(99): error: identifier "Foo" is undefined', UnknownKernel, r'says of the expression: identifier "Foo"'),
        ("nvcc fatal   : Unknown option '--foo'", BadOption, r"whole.cu: nvcc does not take .* Unknown option '--foo'"),
        (
            "nvcc fatal   : Value 'sm_90' is not defined for option 'gpu-architecture'",
            BadOption,
            "'sm_90' is not defined",
        ),
        ("nvcc fatal   : Failed to preprocess host compiler properties.", ToolchainMissing, "nvcc does not work here"),
        ("ptxas error   : too much shared data", CompileError, "^whole.cu: too much shared data"),
        ('At end of source: error: expected a "}"', CompileError, '^whole.cu: At end of source: error: expected a "}"'),
        ("", CompileError, "^whole.cu: nvcc failed without a message"),
    ],
)
def test_what_it_refuses(stand_in: StandInNvcc, words: str, kind: type[Exception], told: str) -> None:
    stand_in.refuses(words)
    with pytest.raises(kind, match=told):
        compile_kernel(whole("scale"), "sm_90")


def test_without_an_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    found_as(monkeypatch, lambda: None)
    with pytest.raises(ToolchainMissing, match=r'compiler="nvcc": there is no nvcc on this machine. Install a CUDA'):
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
def test_the_real_one_names_the_file_and_line_of_a_mistake() -> None:
    with pytest.raises(CompileError, match=r'^whole.cu:2: identifier "y" is undefined') as problem:
        compile_kernel(whole("work", text="\n__global__ void work(float* x) { x[0] = y; }\n"), "sm_90")
    assert "gpuperf-nvcc" not in str(problem.value)
    with pytest.raises(UnknownKernel, match=r'"copy<Foo>" in whole.cu\n.*identifier "Foo" is undefined'):
        compile_kernel(whole("copy<Foo>"), "sm_90")
