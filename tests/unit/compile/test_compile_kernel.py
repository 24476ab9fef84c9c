"""Source to binary, for real: names, figures, errors and PTX, without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.compile import nvrtc as nvrtc_module
from pytest_gpuperf.compile.compile_errors import CompileError, UnknownArchitecture, UnknownKernel
from pytest_gpuperf.compile.compiler import compile_for, compile_kernel, ptx
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.toolkit import toolkit_folders
from pytest_gpuperf.model.architectures import ARCHITECTURES
from pytest_gpuperf.model.evidence import Parameter

TEXT = """
extern "C" __global__ void copy(float* out, const float* in, int n) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n) out[index] = in[index];
}
__global__ void __launch_bounds__(128) scale(double* data, int n) { if (threadIdx.x < n) data[threadIdx.x] *= 3.0; }
template <typename T, int N> __global__ void fill(T* data) { data[threadIdx.x] = T(N); }
namespace inner { __global__ void hidden(short a, double b, char* c) { c[0] = a + b; } }
"""
HOG = """
extern "C" __global__ void hog(float* data) {
    __shared__ float tile[32];
    float kept[64];
    for (int i = 0; i < 64; i++) kept[i] = data[i * 32 + threadIdx.x];
    tile[threadIdx.x & 31] = kept[3];
    __syncthreads();
    for (int j = 0; j < 4; j++) for (int i = 0; i < 64; i++) kept[i] = kept[i] * kept[(i + j * 7) & 63] + tile[j];
    for (int i = 0; i < 64; i++) data[i * 32 + threadIdx.x] = kept[i];
}
"""


def test_a_c_kernel_is_found_by_its_name() -> None:
    binary = compile_kernel(KernelSource(TEXT, "copy"), "sm_90")
    assert (binary.name, binary.symbol, binary.arch, binary.toolchain) == ("copy", "copy", "sm_90", toolchain())
    assert binary.parameters == (
        Parameter(offset=0, size=8, type="64-bit integer or pointer"),
        Parameter(offset=8, size=8, type="64-bit integer or pointer"),
        Parameter(offset=16, size=4, type="32-bit integer"),
    )
    assert binary.max_threads_per_block is None
    assert read_cubin(binary.cubin).arch == "sm_90"


def test_a_cpp_kernel_is_found_by_its_plain_name_and_tells_its_types() -> None:
    binary = compile_kernel(KernelSource(TEXT, "scale"), "sm_90")
    assert binary.symbol == "_Z5scalePdi"
    assert [parameter.type for parameter in binary.parameters] == ["double*", "int"]
    assert binary.max_threads_per_block == 128


@pytest.mark.parametrize("name", ["hidden", "inner::hidden", "_ZN5inner6hiddenEsdPc"])
def test_a_kernel_in_a_namespace_is_found_with_and_without_it(name: str) -> None:
    binary = compile_kernel(KernelSource(TEXT, name), "sm_90")
    assert binary.symbol == "_ZN5inner6hiddenEsdPc"
    assert [(p.offset, p.size) for p in binary.parameters] == [(0, 2), (8, 8), (16, 8)]


@pytest.mark.parametrize(
    "source", [KernelSource(TEXT, "fill<float, 3>"), KernelSource(TEXT, "fill", name_expression="fill<float, 3>")]
)
def test_a_template_is_named_by_an_expression(source: KernelSource) -> None:
    binary = compile_kernel(source, "sm_90")
    assert binary.name == "fill<float, 3>"
    assert binary.symbol == "_Z4fillIfLi3EEvPT_"
    assert len(binary.parameters) == 1


def test_every_known_architecture_compiles() -> None:
    made = compile_for(KernelSource(TEXT, "copy"), [*ARCHITECTURES, "sm_90a", "sm_80"])
    assert list(made) == [*ARCHITECTURES, "sm_90a"]
    assert [read_cubin(binary.cubin).arch for binary in made.values()] == [*ARCHITECTURES, "sm_90"]
    assert len({binary.source_hash for binary in made.values()}) == 1
    for binary in made.values():
        assert binary.profile.opcodes["global_load"] == binary.profile.opcodes["global_store"] == 1
        assert "other" not in binary.profile.opcodes


@pytest.mark.parametrize("arch", ["sm_75", "sm_120"])
def test_the_profile_shows_spills_and_what_they_cost(arch: str) -> None:
    before = compile_kernel(KernelSource(HOG, "hog"), arch).profile
    after = compile_kernel(KernelSource(HOG, "hog", options=("-maxrregcount=32",)), arch).profile
    assert (before.spill_store_bytes, before.spill_load_bytes, before.stack_bytes) == (0, 0, 0)
    assert before.registers > 64
    assert after.registers == 32
    assert after.spill_store_bytes > 100
    assert after.spill_load_bytes > 100
    assert after.stack_bytes > 100
    assert "local_load" not in before.opcodes
    assert after.opcodes["local_load"] > 20
    assert after.instructions > before.instructions
    assert before.shared_bytes == after.shared_bytes == 128  # as declared, also where the driver reserves 1 KB
    assert before.barriers == 1
    assert before.opcodes["fp32"] >= 256
    assert before.opcodes["global_load"] == before.opcodes["global_store"] == 64
    assert "other" not in before.opcodes | after.opcodes
    assert sum(before.opcodes.values()) == before.instructions <= before.code_bytes // 16


def test_spills_of_a_called_function_count() -> None:
    body = HOG.replace('extern "C" __global__ void hog', "__device__ __noinline__ void work")
    text = body + 'extern "C" __global__ void hog(float* data) { work(data); }'
    profile = compile_kernel(KernelSource(text, "hog", options=("-maxrregcount=32",)), "sm_90").profile
    assert profile.spill_store_bytes > 100
    assert profile.opcodes["local_store"] > 20


@pytest.mark.skipif(not toolkit_folders(), reason="no CUDA headers here: neither a toolkit nor nvidia-cuda-runtime")
def test_cuda_headers_are_found() -> None:
    text = '#include <cuda_fp16.h>\nextern "C" __global__ void twice(__half2* a) { a[0] = __hfma2(a[1], a[2], a[3]); }'
    assert compile_kernel(KernelSource(text, "twice"), "sm_90").profile.opcodes["fp16"] >= 1


# --- headers and hashes ----------------------------------------------------------------------------


def with_header(folder: Path, value: str) -> KernelSource:
    folder.mkdir(exist_ok=True)
    (folder / "value.h").write_text(f"#define VALUE {value}\n")
    text = '#include "value.h"\nextern "C" __global__ void set(float* a) { a[0] = VALUE; }'
    return KernelSource(text, "set", folder / "set.cu")


def test_headers_lie_beside_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And are not taken from the folder that the process runs in."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "value.h").write_text("#error wrong file\n")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert compile_kernel(with_header(tmp_path / "here", "1.5f"), "sm_90").symbol == "set"


def test_the_source_hash_covers_source_headers_and_options_but_no_path(tmp_path: Path) -> None:
    def hash_of(source: KernelSource) -> str:
        return compile_kernel(source, "sm_90").source_hash

    first = with_header(tmp_path / "a", "1.5f")
    before = hash_of(first)
    assert hash_of(with_header(tmp_path / "b", "1.5f")) == before
    assert hash_of(with_header(tmp_path / "c", "2.5f")) != before
    assert hash_of(KernelSource(first.text, "set", first.path, ("-DX",))) != before
    assert hash_of(KernelSource(first.text + ";", "set", first.path)) != before
    assert hash_of(KernelSource(first.text + " // a comment", "set", first.path)) == before


# --- errors ----------------------------------------------------------------------------------------


def test_a_compile_error_names_file_and_line_and_quotes_the_compiler(tmp_path: Path) -> None:
    source = KernelSource('extern "C" __global__ void copy() {\n  wrong;\n}', "copy", tmp_path / "copy.cu")
    with pytest.raises(CompileError) as caught:
        compile_kernel(source, "sm_90")
    assert str(caught.value).startswith(f'{tmp_path}/copy.cu:2: identifier "wrong" is undefined\n')
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "copy.cu"), 2)
    assert "1 error detected" in caught.value.log
    assert "<source>" not in str(caught.value)


def test_a_mistake_in_a_header_is_placed_there(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        compile_kernel(with_header(tmp_path / "a", "1\n#error too old"), "sm_90")
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "a" / "value.h"), 2)


def test_too_much_static_shared_memory_is_explained() -> None:
    text = 'extern "C" __global__ void big(int* a) { __shared__ int t[99999]; t[threadIdx.x] = a[0]; a[1] = t[a[2]]; }'
    with pytest.raises(CompileError, match="kernel big declares 399996 bytes of shared memory; at most 49152"):
        compile_kernel(KernelSource(text, "big"), "sm_90")


def test_an_unknown_kernel_lists_those_there_are_and_the_nearest() -> None:
    with pytest.raises(UnknownKernel) as caught:
        compile_kernel(KernelSource(TEXT, "copi", Path("kernels/copy.cu")), "sm_90")
    assert 'no kernel "copi" in kernels/copy.cu; there are: copy, inner::hidden, scale. Did you mean copy?' in str(
        caught.value
    )
    assert "copy<float>" in str(caught.value)


def test_a_kernel_in_an_if_is_there_with_its_macro() -> None:
    text = "#ifdef HAVE_CUDA\n__global__ void copy(int* a) { a[0] = 1; }\n#endif\n"
    with pytest.raises(UnknownKernel, match=r'stands in an #if is there with its macro: options=\["-DNAME"\]'):
        compile_kernel(KernelSource(text, "copy"), "sm_90")
    assert compile_kernel(KernelSource(text, "copy", options=("-DHAVE_CUDA",)), "sm_90").symbol == "_Z4copyPi"


def test_a_message_quotes_the_compiler_from_its_first_error_on_and_no_longer_than_a_screen() -> None:
    warned = "#warning early\n" * 9
    text = (
        warned + 'extern "C" __global__ void k(int* a) {\n' + "".join(f"  a[{n}] = no{n};\n" for n in range(60)) + "}"
    )
    with pytest.raises(CompileError) as caught:
        compile_kernel(KernelSource(text, "k"), "sm_90")
    lines = str(caught.value).splitlines()
    assert lines[0] == 'inline source:11: identifier "no0" is undefined'
    assert lines[1] == 'inline source(11): error: identifier "no0" is undefined'
    assert caught.value.log.count("error: identifier") == 60
    *shown, last = lines
    assert len(shown) == 17
    assert (
        last
        == f"({len(caught.value.log.strip().splitlines()) - 16} more lines of the compiler are in this exception's log)"
    )


def test_an_unknown_template_is_an_unknown_kernel() -> None:
    with pytest.raises(UnknownKernel, match=r'no kernel "fil<int>" in inline source\n.*identifier "fil" is undefined'):
        compile_kernel(KernelSource(TEXT, "fil<int>"), "sm_90")


def test_a_name_shared_by_overloads_has_to_be_given_in_full() -> None:
    text = "__global__ void k(int* a) { a[0] = 1; }\n__global__ void k(float* a) { a[0] = 1; }"
    with pytest.raises(UnknownKernel) as caught:
        compile_kernel(KernelSource(text, "k"), "sm_90")
    assert str(caught.value).splitlines()[1:] == [
        "the name is shared by several kernels: give one with its parameters, as it stands here",
        "    k(float*)",
        "    k(int*)",
    ]
    one = compile_kernel(KernelSource(text, "k(float*)"), "sm_90")
    assert (one.symbol, one.name) == ("_Z1kPf", "k(float*)")
    assert compile_kernel(KernelSource(text, "_Z1kPf"), "sm_90").symbol == "_Z1kPf"


def test_an_architecture_without_limits_is_refused_before_compiling() -> None:
    with pytest.raises(UnknownArchitecture, match="'sm_70' is not a known architecture; known: sm_75"):
        compile_for(KernelSource("wrong", "copy"), ["sm_90", "sm_70"])


def test_an_architecture_that_this_compiler_lacks_lists_those_it_has() -> None:
    program = KernelSource(TEXT, "copy")
    with pytest.raises(UnknownArchitecture, match="to this NVRTC; known: sm_75"):
        nvrtc_module.compile_cubin(program, "sm_50")


def test_compiling_leaves_pythons_shared_bytes_alone() -> None:
    """An empty log is one byte long, and Python has one object for every byte string of that length."""
    space = bytes([ord(" ")])
    compile_kernel(KernelSource(TEXT, "copy"), "sm_90")
    assert space[0] == ord(" ")


# --- PTX -------------------------------------------------------------------------------------------


EVERY_KIND = """
struct Pair { int a; float b; };
extern "C" __global__ void kinds(float* out, int n, float a, double d, unsigned short s, bool b,
                                 unsigned long long u, Pair pair, float4 v) {
    out[n] = a + d + s + b + u + pair.a + v.x;
}
extern "C" __global__ void none() {}
"""


@pytest.mark.parametrize(("arch", "pointer"), [("sm_90", "64-bit integer or pointer"), ("sm_120", "pointer")])
def test_parameters_of_a_c_kernel_are_typed_as_far_as_its_ptx_tells(arch: str, pointer: str) -> None:
    binary = compile_kernel(KernelSource(EVERY_KIND, "kinds"), arch)
    assert [parameter.type for parameter in binary.parameters] == [
        pointer, "32-bit integer", "float", "double", "16-bit integer", "8-bit integer", "64-bit integer or pointer",
        None, None,
    ]  # fmt: skip
    assert compile_kernel(KernelSource(EVERY_KIND, "none"), arch).parameters == ()


def test_ptx_of_a_template_holds_its_instance() -> None:
    module = ptx(KernelSource(TEXT, "fill<float, 3>"), "sm_90")
    assert "st.global" in module.partition(".entry _Z4fillIfLi3EEvPT_(")[2]
