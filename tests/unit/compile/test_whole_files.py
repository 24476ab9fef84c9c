"""Files of whole programs: headers and names of the host, and refused sources whose remedy works."""

from __future__ import annotations

from pathlib import Path

import pytest
from stand_in_nvcc import need_nvcc

from pytest_gpuperf.compile.compile_errors import BadCubin, CompileError
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.machine_code.binary import ready_made
from pytest_gpuperf.compile.nvcc import compile_by_nvcc
from pytest_gpuperf.compile.nvrtc import HOST_HEADERS, compile_cubin
from pytest_gpuperf.compile.remedies import remedy
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.toolkit import toolkit_folders
from pytest_gpuperf.model.evidence import KernelBinary

KERNEL = 'extern "C" __global__ void work(float* x, int n) {{ {} }}\n'


def compiled(text: str, **options: object) -> KernelBinary:
    return compile_kernel(KernelSource(text, "work", **options), "sm_90")  # type: ignore[arg-type]


def code(text: str) -> str:
    return compiled(text).profile.code_hash


STUBS = [
    str(path.relative_to(folder))
    for folder in (HOST_HEADERS, HOST_HEADERS.with_name("libraries"))
    for path in sorted(folder.rglob("*"))
    if path.is_file()
]


def test_each_header_is_there_and_may_be_included_twice() -> None:
    assert len(STUBS) > 100
    includes = "".join(f"#include <{name}>\n" for name in STUBS)
    assert code(f"{includes}{includes}{KERNEL.format('x[n] = 1;')}") == code(KERNEL.format("x[n] = 1;"))


VALUES = [
    (["cmath"], "std::sqrt(x[1])", "sqrtf(x[1])"),
    (["math.h"], "(float)M_PI", "3.14159265358979f"),
    (["float.h", "cfloat"], "-FLT_EPSILON", "-1.1920929e-07f"),
    (["stdint.h"], "(float)(std::int64_t)n", "(float)(long)n"),
    (["stdlib.h"], "(float)(uint)n", "(float)(unsigned int)n"),
    ([], "(float)(uint)n + FLT_MIN + 1", "(float)(unsigned int)n + 1.175494351e-38f + 1"),
    (["chrono", "vector"], "(float)(uint16_t)n", "(float)(unsigned short)n"),
    (["limits", "algorithm"], "std::numeric_limits<float>::max() + std::max(n, 3)", "3.402823466e+38f + max(n, 3)"),
    (["array", "utility"], "(float)std::array<int, 2>{n, 2}[0]", "(float)n"),
]


def test_names_of_the_host_mean_what_they_mean_there() -> None:
    """One kernel of them all: the code is that of their values."""
    names = dict.fromkeys(name for headers, *_ in VALUES for name in headers)
    includes = "".join(f"#include <{name}>\n" for name in names)
    meant, same = (
        KERNEL.format(" ".join(f"x[{place}] = {row[side]};" for place, row in enumerate(VALUES))) for side in (1, 2)
    )
    assert code(includes + meant) == code(same)
    (without,) = (row for row in VALUES if not row[0])
    assert code(KERNEL.format(f"x[0] = {without[1]};")) == code(KERNEL.format(f"x[0] = {without[2]};"))


def test_they_step_aside_for_headers_of_cuda() -> None:
    ours = "#include <cstdint>\n#include <cmath>\n#include <cfloat>\n#include <climits>\n"
    names = ("cuda/std/cstdint", "cuda/std/limits", "cuda/std/cmath", "cuda_fp16.h")
    theirs = "".join(f"#include <{name}>\n" for name in names)
    text = (
        "__device__ float f(std::int64_t n, uint16_t m) { return n + m + INT64_MAX + FLT_MAX + INFINITY + LONG_MAX; }\n"
    )
    for both in (theirs + ours, ours + theirs):
        compile_cubin(KernelSource(both + text + KERNEL.format("x[0] = f(n, n) + std::sqrt(x[1]);"), "work"), "sm_90")


def test_headers_and_names_of_the_users_own_are_taken(tmp_path: Path) -> None:
    (tmp_path / "math.h").write_text("#define M_PI 3.0f\n")
    text = "#include <stdio.h>\n#include <math.h>\n" + KERNEL.format("x[0] = M_PI;")
    assert compiled(text, headers=(tmp_path,)).profile.code_hash == code(KERNEL.format("x[0] = 3.0f;"))
    own = "#include <cstdlib>\ntypedef unsigned int uint;\n#define M_PI 3.0f\n"
    assert code(own + KERNEL.format("x[0] = M_PI * (uint)n;")) == code(KERNEL.format("x[0] = 3.0f * (unsigned int)n;"))


def test_header_of_an_installed_host_library_is_empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cublas_v2.h").write_text("#include <stdint.h>\ncudaStream_t cublas(FILE*);\n")
    folders = (tmp_path, *toolkit_folders())
    monkeypatch.setattr("pytest_gpuperf.compile.nvrtc.toolkit_folders", lambda: folders)
    monkeypatch.setattr("pytest_gpuperf.compile.compiler.toolkit_folders", lambda: folders)
    assert code("#include <cublas_v2.h>\n" + KERNEL.format("x[0] = n;")) == code(KERNEL.format("x[0] = n;"))


@pytest.mark.parametrize("line", ["int main() { std::vector<int> v; }", "void fail() { throw 1; }", "std::string f();"])
def test_code_of_the_host_is_told_with_its_line_and_the_remedies(line: str) -> None:
    text = "#include <vector>\n#include <cstdio>\n" + KERNEL.format("x[0] = n;") + line + "\n"
    with pytest.raises(CompileError, match=r"^whole.cu:4: ") as problem:
        compiled(text, path=Path("whole.cu"))
    told = str(problem.value)
    assert "Line 4 of whole.cu is host code, which NVRTC does not compile. Remove it; or put it, " in told
    assert 'or compile the whole file with an installed\nnvcc: cuda_kernel(..., compiler="nvcc").' in told
    guarded = text.replace(line, f"#ifndef __CUDACC_RTC__\n{line}\n#endif")
    compile_cubin(KernelSource(guarded, "work"), "sm_90")


def test_functions_that_launch_kernels_are_dropped() -> None:
    host = """#include <cstdio>
    #define CHECK(call) do { cudaError_t status = (call); if (status != cudaSuccess) { \\
        fprintf(stderr, "%s", cudaGetErrorString(status)); exit(EXIT_FAILURE); } } while (0)
    __host__ void launch(float* x, cudaStream_t stream) {
        CHECK(cudaFuncSetAttribute(work, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
        work<<<dim3(2), 32, 65536, stream>>>(x, 3);
        CHECK(cudaGetLastError());
    }
    int main() {
        float *x, copy[32];
        cudaEvent_t start;
        CHECK(cudaMalloc(&x, 128));
        CHECK(cudaMemset(x, 0, 128));
        CHECK(cudaEventCreate(&start));
        CHECK(cudaEventRecord(start));
        launch(x, 0);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(copy, x, 128, cudaMemcpyDeviceToHost));
        printf("%f", copy[0]);
        return 0;
    }
    """
    kernel = KERNEL.format("x[0] = n;")
    alone, whole = (compile_cubin(KernelSource(text, "work"), "sm_90") for text in (kernel, kernel + host))
    assert [part for part in whole.ptx.splitlines() if part.startswith((".func", ".visible", ".global"))] == [
        ".visible .entry work("
    ]
    assert code(kernel + host) == code(kernel)
    assert alone.lowered == whole.lowered


def test_a_header_for_host_and_device_compiles() -> None:
    both = KERNEL.format("((thrust::complex<float>*)x)[0] = ((thrust::complex<float>*)x)[1] * (float)n;")
    assert compiled(f"#include <thrust/complex.h>\n{both}").profile.registers > 0


def test_a_cubin_that_lacks_the_runtime_of_the_device_is_refused() -> None:
    declared = 'extern "C" __device__ int cudaLaunchDeviceV2_ptsz(void*, void*);\n'
    text = declared + KERNEL.format("cudaLaunchDeviceV2_ptsz(x, x);")
    unlinked = compile_cubin(KernelSource(text, "work", options=("--relocatable-device-code=true",)), "sm_90").cubin
    with pytest.raises(BadCubin, match=r"^a\.cubin: it is not linked, it lacks cudaLaunchDeviceV2_ptsz: kernels that"):
        ready_made(unlinked, "work", place="a.cubin")


WORK = "__global__ void work(float* x) {{ x[0] = {}; }}\n"
PART = WORK.format("LENGTH * 2.0f")


@pytest.fixture(params=["nvrtc", "nvcc"])
def compiler(request: pytest.FixtureRequest) -> str:
    if request.param == "nvcc":
        need_nvcc()
    return str(request.param)


def compiles(text: str, *options: str, folder: Path = Path(), **more: object) -> bool:
    source = KernelSource(text, "work", folder / "whole.cu", options, **more)  # type: ignore[arg-type]
    return bool((compile_by_nvcc if source.compiler == "nvcc" else compile_cubin)(source, "sm_90").cubin)


def refused(text: str, *options: str, **more: object) -> str:
    with pytest.raises(CompileError) as problem:
        compiles(text, *options, **more)  # type: ignore[arg-type]
    return str(problem.value)


def test_a_header_that_no_folder_holds(compiler: str, tmp_path: Path) -> None:
    text = f"#include <ours/length.h>\n{PART}"
    told = refused(text, compiler=compiler)
    assert told.startswith("whole.cu:1: ")
    assert "ours/length.h was not found in the source's folder, headers=, -I folders and " in told
    assert "A header of yours: add its folder with headers=." in told
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "length.h").write_text("#define LENGTH 3\n")
    assert compiles(text, headers=(tmp_path,), compiler=compiler)
    assert "or write a header of that name with the declarations that the kernels use." in told
    told = refused(f"#include <ATen/ATen.h>\n{WORK.format(1)}", compiler=compiler)
    assert "headers=[*torch.utils.cpp_extension.include_paths(), sysconfig.get_path('include')]" in told


def test_code_of_the_host_in_a_header_is_told_with_the_include_to_guard(tmp_path: Path) -> None:
    (tmp_path / "host.h").write_text("#include <vector>\nstd::vector<int> all();\n")
    text = '#include "host.h"\n' + WORK.format(1)
    told = refused(text, folder=tmp_path)
    assert f"Line 2 of {tmp_path / 'host.h'} is host code, which NVRTC does not compile." in told
    assert "or the #include that\nleads to it, between #ifndef __CUDACC_RTC__ and #endif" in told
    assert compiles(
        f"#ifndef __CUDACC_RTC__\n{text.replace(chr(10), chr(10) + '#endif' + chr(10), 1)}", folder=tmp_path
    )


def test_a_function_of_another_file_is_included_or_linked(compiler: str, tmp_path: Path) -> None:
    text = "__device__ float other(float);\n" + WORK.format("other(x[1])")
    told = refused(text, compiler=compiler)
    assert "it is declared and not defined. Include the source that defines it, or link both:\n" in told
    assert "\nnvcc -arch=ARCH -rdc=true -dlink -cubin ONE.cu OTHER.cu -o linked.cubin, for cuda_kernel." in told
    (tmp_path / "other.cu").write_text("__device__ float other(float v) { return 2 * v; }\n")
    assert compiles(f'{text}#include "other.cu"\n', folder=tmp_path, compiler=compiler)


def test_a_kernel_that_launches_kernels_leaves_that_to_the_test(compiler: str) -> None:
    inner = "__global__ void work(float* x) { x[1] = 2; }\n"
    told = refused(inner + "__global__ void outer(float* x) { work<<<1, 1>>>(x); }\n", compiler=compiler)
    assert told.endswith("Launch the inner kernel from the test, or give gpuperf a function that runs both.")
    assert "linked with cudadevrt" in told
    assert compiles(inner, compiler=compiler)


ONLY, SOME = "Only the architecture-specific target has it", "Only architecture-specific targets have it"


@pytest.mark.parametrize(("instruction", "on", "arch", "told"), [
    ("wgmma.fence.sync.aligned;", "sm_90", "sm_90a", ONLY),
    ("setmaxnreg.inc.sync.aligned.u32 64;", "sm_80", "sm_90a", SOME),
    ("{.reg .f32 r; redux.sync.min.f32 r, r, -1;}", "sm_90a", "sm_100a", SOME),
    ("{.reg .b8 b; .reg .f32 r; cvt.rn.satfinite.e2m1x2.f32 b, r, r;}", "sm_120", "sm_120a", SOME),
])  # fmt: skip
def test_instruction_of_a_whole_architecture(instruction: str, on: str, arch: str, told: str) -> None:
    source = KernelSource(f'__global__ void work(float* x) {{ asm volatile("{instruction}"); x[0] = 1; }}', "work")
    with pytest.raises(CompileError, match=f'{told}: .*arch=.*"{arch}"'):
        compile_cubin(source, on)
    compile_cubin(source, arch)


@pytest.mark.parametrize("line", [
    '/x/cuda/std/__cccl/cuda_toolkit.h:39:6: error: #error "CUDA compiler and CUDA toolkit headers are incompatible',
    '/x/cccl/cuda/std/__type_traits/is.h(76): error: identifier "__nv_fp8_e8m0" is undefined',
    'cub/version.cuh(87): error: static assertion failed with ""\n  static_assert(CUB_MAJOR_VERSION == CCCL_MAJOR_',
    'cub/version.cuh(87): error: static assertion failed with ""\n  static_assert((200302 / 100000) == (3000001 / ',
])  # fmt: skip
def test_headers_of_two_cuda_versions_are_told(line: str) -> None:
    """As NVRTC 13.0 and nvcc 13.0 say it of headers of CUDA 12.4."""
    for compiler in ("nvrtc", "nvcc"):
        assert remedy(line, compiler).startswith("Headers of two CUDA versions are mixed: leave CUDA's out of headers=")
