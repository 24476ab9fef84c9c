"""Source to binary, for real: names, figures, errors and PTX, without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_compile_cache import with_header

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import CompileError, UnknownArchitecture, UnknownKernel
from pytest_gpuperf.compile.compiler import compile_for, compile_kernel, ptx
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.model.architectures import ARCHITECTURES
from pytest_gpuperf.model.evidence import KernelBinary, Parameter

TEXT = """
extern "C" __global__ void copy(float* out, const float* in, int n) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n) out[index] = in[index];
}
__global__ void __launch_bounds__(128) scale(double* data, int n) { if (threadIdx.x < n) data[threadIdx.x] *= 3.0; }
template <typename T, int N> __global__ void fill(T* data) { data[threadIdx.x] = T(N); }
namespace inner { __global__ void hidden(short a, double b, char* c) { c[0] = a + b; } }
__global__ void shared(int* a) { a[0] = 1; }
__global__ void shared(float* a) { a[0] = 1; }
struct Pair { int a; float b; };
extern "C" __global__ void kinds(float* out, int n, float a, double d, unsigned short s, bool b,
                                 unsigned long long u, Pair pair, float4 v) {
    out[n] = a + d + s + b + u + pair.a + v.x;
}
extern "C" __global__ void none() {}
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
LIMITED = ("-maxrregcount=32",)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> CompileCache:
    """The kernels of one text are compiled once."""
    return CompileCache(tmp_path_factory.mktemp("compiled"))


def test_kernels_are_found_by_their_names_and_tell_their_parameters(cache: CompileCache) -> None:
    def named(name: str) -> KernelBinary:
        return compile_kernel(KernelSource(TEXT, name), "sm_90", cache=cache)

    binary = named("copy")
    assert (binary.name, binary.symbol, binary.arch, binary.toolchain) == ("copy", "copy", "sm_90", toolchain())
    assert binary.parameters[1:] == (
        Parameter(offset=8, size=8, type="64-bit integer or pointer"),
        Parameter(offset=16, size=4, type="32-bit integer"),
    )
    assert (binary.max_threads_per_block, read_cubin(binary.cubin).arch) == (None, "sm_90")
    scale = named("scale")
    assert (scale.symbol, scale.max_threads_per_block) == ("_Z5scalePdi", 128)
    assert [parameter.type for parameter in scale.parameters] == ["double*", "int"]
    for name in ("hidden", "inner::hidden", "_ZN5inner6hiddenEsdPc"):
        assert named(name).symbol == "_ZN5inner6hiddenEsdPc"
    assert [(p.offset, p.size) for p in named("hidden").parameters] == [(0, 2), (8, 8), (16, 8)]
    for name in ("shared(float*)", "_Z6sharedPf"):
        assert (named(name).symbol, named(name).name) == ("_Z6sharedPf", name)
    assert (named("fill<float, 3>").symbol, named("fill<float, 3>").name) == ("_Z4fillIfLi3EEvPT_", "fill<float, 3>")
    by_expression = KernelSource(TEXT, "fill", name_expression="fill<float, 3>")
    assert compile_kernel(by_expression, "sm_90", cache=cache) == named("fill<float, 3>")


def test_every_known_architecture_compiles() -> None:
    source = KernelSource('extern "C" __global__ void copy(int* x) { x[threadIdx.x] = x[threadIdx.x + 1]; }', "copy")
    for arch in (*ARCHITECTURES, "sm_90a"):
        assert read_cubin(compile_cubin(source, arch).cubin).arch == arch.removesuffix("a")
    made = compile_for(source, ["sm_120", "sm_90a", "sm_120"])
    assert list(made) == ["sm_120", "sm_90a"]
    assert len({binary.source_hash for binary in made.values()}) == 1
    for binary in made.values():
        assert binary.profile.opcodes["global_load"] == binary.profile.opcodes["global_store"] == 1


def test_the_profile_shows_spills_and_what_they_cost() -> None:
    before, after = (
        compile_kernel(KernelSource(HOG, "hog", options=options), "sm_120").profile for options in ((), LIMITED)
    )
    assert (before.spill_store_bytes, before.spill_load_bytes, before.stack_bytes) == (0, 0, 0)
    assert before.registers > 64
    assert after.registers == 32
    assert min(after.spill_store_bytes, after.spill_load_bytes, after.stack_bytes) > 100
    assert "local_load" not in before.opcodes
    assert after.opcodes["local_load"] > 20
    assert before.shared_bytes == after.shared_bytes == 128  # as declared, also where the driver reserves 1 KB
    assert (before.barriers, before.opcodes["global_load"], before.opcodes["global_store"]) == (1, 64, 64)
    assert before.opcodes["fp32"] >= 256
    assert "other" not in before.opcodes | after.opcodes
    assert sum(before.opcodes.values()) == before.instructions <= before.code_bytes // 16


def test_spills_of_a_called_function_count() -> None:
    body = HOG.replace('extern "C" __global__ void hog', "__device__ __noinline__ void work")
    text = body + 'extern "C" __global__ void hog(float* data) { work(data); }'
    profile = compile_kernel(KernelSource(text, "hog", options=LIMITED), "sm_90").profile
    assert profile.spill_store_bytes > 100
    assert profile.opcodes["local_store"] > 20


@pytest.mark.parametrize(("arch", "pointer"), [("sm_90", "64-bit integer or pointer"), ("sm_120", "pointer")])
def test_parameters_are_typed_as_far_as_ptx_tells(arch: str, pointer: str, cache: CompileCache) -> None:
    binary = compile_kernel(KernelSource(TEXT, "kinds"), arch, cache=cache)
    assert [parameter.type for parameter in binary.parameters] == [
        pointer, "32-bit integer", "float", "double", "16-bit integer", "8-bit integer", "64-bit integer or pointer",
        None, None,
    ]  # fmt: skip
    assert compile_kernel(KernelSource(TEXT, "none"), arch, cache=cache).parameters == ()


# --- headers and hashes ----------------------------------------------------------------------------


def test_source_hash_covers_all_but_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers lie beside the source, and are not taken from the folder that the process runs in."""
    monkeypatch.chdir(with_header(tmp_path / "elsewhere", "\n#error wrong file").path.parent)  # type: ignore[union-attr]

    def hash_of(source: KernelSource) -> str:
        return compile_kernel(source, "sm_90").source_hash

    first = with_header(tmp_path / "a", "1.5f")
    same = [with_header(tmp_path / "b", "1.5f"), KernelSource(first.text + " // a comment", "set", first.path)]
    other = [
        with_header(tmp_path / "c", "2.5f"), KernelSource(first.text, "set", first.path, ("-DX",)),
        KernelSource(first.text + ";", "set", first.path),
    ]  # fmt: skip
    before = hash_of(first)
    assert [hash_of(one) == before for one in (*same, *other)] == [True] * 2 + [False] * 3


# --- errors ----------------------------------------------------------------------------------------


def test_a_compile_error_names_file_and_line_and_quotes_the_compiler(tmp_path: Path) -> None:
    source = KernelSource('extern "C" __global__ void copy() {\n  wrong;\n}', "copy", tmp_path / "copy.cu")
    with pytest.raises(CompileError) as caught:
        compile_kernel(source, "sm_90")
    assert str(caught.value).startswith(f'{tmp_path}/copy.cu:2: identifier "wrong" is undefined\n')
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "copy.cu"), 2)
    assert "1 error detected" in caught.value.log
    assert "more lines of the compiler" not in str(caught.value), "it counts no warnings of the plugin's own headers"
    assert "<source>" not in str(caught.value)
    with pytest.raises(CompileError) as caught:
        compile_kernel(with_header(tmp_path / "a", "1\n#error too old"), "sm_90")
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "a" / "value.h"), 2)


def test_too_much_static_shared_memory_is_explained() -> None:
    text = 'extern "C" __global__ void big(int* a) { __shared__ int t[99999]; t[threadIdx.x] = a[0]; a[1] = t[a[2]]; }'
    with pytest.raises(CompileError, match="kernel big declares 399996 bytes of shared memory; at most 49152"):
        compile_kernel(KernelSource(text, "big"), "sm_90")


@pytest.mark.parametrize(("text", "name", "words"), [
    (TEXT, "copi", 'no kernel "copi" in kernels/copy.cu; there are: copy, inner::hidden, kinds, none, scale, '
     "shared, shared. Did you mean copy?\nan instance of a template is named with its arguments"),
    (TEXT, "fil<int>", 'no kernel "fil<int>" in kernels/copy.cu\nthe compiler rejects the expression: identifier'),
    (TEXT, "shared", "several kernels have this name: give one with its parameters, as listed here\n"
     "    shared(float*)\n    shared(int*)"),
    ("#ifdef X\n__global__ void copy() {}\n#endif", "copy", "code in an #if needs its macro, options="),
])  # fmt: skip
def test_an_unknown_kernel_lists_those_there_are(text: str, name: str, words: str, cache: CompileCache) -> None:
    with pytest.raises(UnknownKernel) as caught:
        compile_kernel(KernelSource(text, name, Path("kernels/copy.cu")), "sm_90", cache=cache)
    assert words in str(caught.value)


def test_a_message_quotes_the_compiler_from_its_first_error_on_and_no_longer_than_a_screen() -> None:
    mistakes = "".join(f"  a[{n}] = no{n};\n" for n in range(60))
    text = "#warning early\n" * 9 + f'extern "C" __global__ void k(int* a) {{\n{mistakes}}}'
    with pytest.raises(CompileError) as caught:
        compile_kernel(KernelSource(text, "k"), "sm_90")
    first, second, *rest, last = str(caught.value).splitlines()
    assert first == 'inline source:11: identifier "no0" is undefined'
    assert second == 'inline source(11): error: identifier "no0" is undefined'
    assert caught.value.log.count("error: identifier") == 60
    more = len(caught.value.log.strip().splitlines()) - 16
    assert (len(rest), last) == (15, f"({more} more lines of the compiler are in this exception's log)")


def test_a_loss_that_the_assembler_reports_is_a_warning_with_its_remedy(cache: CompileCache) -> None:
    """The machine code lacks the instruction then, and is otherwise as good: no figure tells."""
    asm = 'asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"); y[0] = 1;'
    text = 'extern "C" __global__ void __launch_bounds__(384{}) k(float* y) {{ {} }}'
    for _ in range(2):  # from the cache too
        with pytest.warns(UserWarning, match=r"^k\.cu: the assembler for sm_90a: .*setmaxnreg.*\(threads, 1\)"):
            compile_kernel(KernelSource(text.format("", asm), "k", Path("k.cu")), "sm_90a", cache=cache)
    compile_kernel(KernelSource(text.format(", 1", asm), "k", Path("k.cu")), "sm_90a", cache=cache)


def test_an_unknown_architecture_lists_those_known() -> None:
    with pytest.raises(
        UnknownArchitecture, match="'sm_70' is not a known architecture; CUDA 13 dropped it; known: sm_75"
    ):
        compile_for(KernelSource("wrong", "copy"), ["sm_90", "sm_70"])
    with pytest.raises(UnknownArchitecture, match=r"to NVRTC 13\.\d; CUDA 13 dropped it; known: sm_75"):
        compile_cubin(KernelSource(TEXT, "copy"), "sm_50")


def test_compiling_leaves_pythons_shared_bytes_alone() -> None:
    """An empty log is one byte long, and Python has one object for every byte string of that length."""
    space = bytes([ord(" ")])
    compile_cubin(KernelSource(HOG, "hog"), "sm_90")
    assert space[0] == ord(" ")


def test_ptx_of_a_template_holds_its_instance() -> None:
    module = ptx(KernelSource(TEXT, "fill<float, 3>"), "sm_90")
    assert "st.global" in module.partition(".entry _Z4fillIfLi3EEvPT_(")[2]


NARROW = """
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_fp4.h>
extern "C" __global__ void narrow(TYPE* x, __nv_bfloat16* y) { y[threadIdx.x] = __nv_bfloat16(float(x[threadIdx.x])); }
"""


@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
@pytest.mark.parametrize("name", ["__nv_bfloat16", "__nv_fp8_e4m3", "__nv_fp8_e5m2", "__nv_fp4_e2m1"])
def test_headers_of_narrow_types_come_with_the_wheels(name: str, arch: str) -> None:
    made = compile_kernel(KernelSource(NARROW, "narrow", options=(f"-DTYPE={name}",)), arch)
    assert (made.arch, len(made.parameters), made.profile.spill_bytes) == (arch, 2, 0)
