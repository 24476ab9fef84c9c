"""Files compiled by nvcc: by a stand-in everywhere, and by nvcc itself where it is installed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from stand_in_nvcc import StandInNvcc, forget_nvcc, found_as, need_nvcc

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import BadOption, CompileError, ToolchainMissing, UnknownKernel
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.machine_code.symbols import readable
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
def fresh() -> object:
    forget_nvcc()
    yield
    forget_nvcc()


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandInNvcc:
    folder = tmp_path / "nvcc"
    folder.mkdir()
    program = StandInNvcc(folder)
    program.makes(KERNELS + ASKED)
    found_as(monkeypatch, lambda: str(folder / "nvcc"))
    return program


def test_a_kernel_of_a_whole_program(stand_in: StandInNvcc) -> None:
    binary = compile_kernel(whole("scale"), "sm_90")
    assert (binary.symbol, binary.toolchain, binary.arch) == ("_Z5scalePff", "nvcc 13.0.88", "sm_90")
    assert binary.profile.registers > 0
    assert binary.profile.spill_store_bytes == 0
    assert stand_in.text == f'#line 1 "<source>/whole.cu"\n{WHOLE}'


def test_an_instance_is_taken_from_the_file_or_made(stand_in: StandInNvcc) -> None:
    assert compile_kernel(whole("copy<float>"), "sm_90").symbol == "_Z4copyIfEvPT_PKS0_"
    assert stand_in.text == f'#line 1 "<source>/whole.cu"\n{WHOLE}'
    with pytest.raises(UnknownKernel, match=r'no kernel "copy<real>" in whole.cu; there are: copy<float>, scale'):
        compile_kernel(whole("copy<real>"), "sm_90")
    named = "template <auto*> __global__ void gpuperf_named() {} template __global__ void gpuperf_named<&copy<real>>();"
    assert stand_in.text.endswith(f'{WHOLE}\n#line 1 "__nv_name_map"\n{named}\n')
    stand_in.makes(f"using real = double;\n{KERNELS}{named}")
    forget_nvcc()
    assert compile_kernel(whole("copy<real>"), "sm_90").symbol == "_Z4copyIdEvPT_PKS0_"
    stand_in.refuses('__nv_name_map(1): error: namespace "ns" has no member "copy"')
    with pytest.raises(UnknownKernel, match=r"ns::copy<int>.*\n.* rejects the expression: namespace"):
        compile_kernel(whole("ns::copy<int>"), "sm_90")


def test_a_file_is_compiled_again_where_anything_in_it_changed(
    stand_in: StandInNvcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = CompileCache(tmp_path / "cache")
    made = compile_kernel(whole("scale", text=KERNELS), "sm_90", cache=cache)
    stand_in.refuses("FILE(1): error: it was compiled")
    assert compile_kernel(whole("copy<float>", text=KERNELS), "sm_90", cache=cache).name == "copy<float>"
    forget_nvcc()
    assert compile_kernel(whole("scale", text=KERNELS), "sm_90", cache=cache) == made
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-O1")
    for options, text in (((), KERNELS), (("-O2",), KERNELS), ((), f"{KERNELS} ")):
        with pytest.raises(CompileError, match="it was compiled"):
            compile_kernel(whole("scale", *options, text=text), "sm_90", cache=cache)
        monkeypatch.delenv("NVCC_APPEND_FLAGS", raising=False)
    forget_nvcc()
    (stand_in.folder / "header").write_text("of the host")
    with pytest.raises(CompileError, match="it was compiled"):
        compile_kernel(whole("scale", text=KERNELS), "sm_90", cache=cache)


@pytest.mark.parametrize(("words", "kind", "told"), [
    ('FILE(7): error: identifier "y" is undefined', CompileError, r'^whole.cu:7: identifier "y" is undefined'),
    ("FILE:1:10: fatal error: no.h: No such file", CompileError, r"^whole.cu:1: no.h: No such file"),
    ("nvcc fatal   : Unknown option '--foo'", BadOption, r"whole.cu: nvcc rejects an option: Unknown option '--foo'"),
    ("nvcc fatal   : Failed to preprocess host compiler properties.", ToolchainMissing, "nvcc does not work here"),
    ("ptxas error   : too much shared data", CompileError, "^whole.cu: too much shared data"),
    ('At end of source: error: expected a "}"', CompileError, '^whole.cu: At end of source: error: expected a "}"'),
    ("", CompileError, "^whole.cu: nvcc failed without a message"),
])  # fmt: skip
def test_what_it_refuses(stand_in: StandInNvcc, words: str, kind: type[Exception], told: str) -> None:
    stand_in.refuses(words)
    with pytest.raises(kind, match=told):
        compile_kernel(whole("scale"), "sm_90")


def test_without_an_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    found_as(monkeypatch, lambda: None)
    with pytest.raises(ToolchainMissing, match=r'compiler="nvcc": there is no nvcc on this machine. Install a CUDA'):
        compile_kernel(whole("scale"), "sm_90")


def test_the_real_one_compiles_a_whole_program_and_names_the_line_of_a_mistake() -> None:
    need_nvcc()
    made = compile_kernel(whole("scale"), "sm_90")
    assert (made.symbol, made.toolchain.partition(" ")[0]) == ("_Z5scalePff", "nvcc")
    with pytest.raises(CompileError, match=r'^whole.cu:2: identifier "y" is undefined') as problem:
        compile_kernel(whole("work", text="\n__global__ void work(float* x) { x[0] = y; }\n"), "sm_90")
    assert "gpuperf-nvcc" not in str(problem.value)


@pytest.mark.parametrize(("expression", "name"), [
    ("ns::copy<real, ns::Way::back>", "ns::copy<float, (ns::Way)1, int>"),
    ("ns::inner<3>", "ns::(anonymous namespace)::inner<3>"),
    ("ns::plain", "ns::(anonymous namespace)::plain"),
])  # fmt: skip
def test_the_real_one_makes_and_names_instances_as_nvrtc_does(expression: str, name: str) -> None:
    need_nvcc()
    text = """using real = float;
    namespace ns {
    enum class Way { there, back };
    template <typename T, Way way, typename U = int> __global__ void copy(T* x, U* y) { x[0] = y[0]; }
    namespace {
    template <int N> __global__ void inner(float* x) { x[0] = N; }
    __global__ void plain(float* x) { x[0] = 1; }
    }
    }
    """
    source = whole("it", text=text, name_expression=expression)
    made, same = (compile_kernel(dataclasses.replace(source, compiler=one), "sm_90") for one in ("nvcc", "nvrtc"))
    assert readable(made.symbol) == readable(same.symbol) == name
