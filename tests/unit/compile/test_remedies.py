"""Each message about a refused source names a remedy, and the remedy works: refused, remedied, compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.compile.compile_errors import CompileError, ToolchainMissing
from pytest_gpuperf.compile.nvcc import compile_by_nvcc, nvcc
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.remedies import remedy
from pytest_gpuperf.compile.source import KernelSource

WORK = "__global__ void work(float* x) {{ x[0] = {}; }}\n"
PART = WORK.format("LENGTH * 2.0f")


@pytest.fixture(params=["nvrtc", "nvcc"])
def compiler(request: pytest.FixtureRequest) -> str:
    if request.param == "nvcc":
        request.getfixturevalue("real")
    return str(request.param)


@pytest.fixture
def real() -> None:
    try:
        nvcc()
    except ToolchainMissing as problem:
        pytest.skip(str(problem))


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
    assert "ours/length.h was searched in the source's own folder, headers=, -I folders and " in told
    assert "A header of yours: add its folder with headers=." in told
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "length.h").write_text("#define LENGTH 3\n")
    assert compiles(text, headers=(tmp_path,), compiler=compiler)
    assert "or write one of that name that declares what the kernels take of it." in told


def test_a_header_of_pytorch_says_where_those_are() -> None:
    for header in ("ATen/cuda/CUDAContext.h", "Python.h"):
        told = remedy(f"a.cu:1:10: fatal error: {header}: No such file or directory", "nvcc")
        assert "headers=[*torch.utils.cpp_extension.include_paths(), sysconfig.get_path('include')]" in told


def test_a_first_error_that_later_ones_show_to_be_of_the_host() -> None:
    host = "void clock_of() { struct timeval now;\ngettimeofday(&now, 0); cudaFree(0); }\n"
    told = refused(WORK.format(1) + host)
    assert told.startswith('whole.cu:2: incomplete type "timeval" is not allowed')
    assert "Line 3 of whole.cu is code of the host, which NVRTC does not compile." in told
    assert compiles(f"{WORK.format(1)}#ifndef __CUDACC_RTC__\n{host}#endif\n")


def test_code_of_the_host_in_a_header_is_told_with_the_include_to_guard(tmp_path: Path) -> None:
    (tmp_path / "host.h").write_text("#include <vector>\nstd::vector<int> all();\n")
    text = '#include "host.h"\n' + WORK.format(1)
    told = refused(text, folder=tmp_path)
    assert f"Line 2 of {tmp_path / 'host.h'} is code of the host, which NVRTC does not compile." in told
    assert "last, or the #include that leads to it, by #ifndef __CUDACC_RTC__ and #endif" in told
    assert compiles(
        f"#ifndef __CUDACC_RTC__\n{text.replace(chr(10), chr(10) + '#endif' + chr(10), 1)}", folder=tmp_path
    )


def test_a_function_of_another_file_is_included_or_linked(compiler: str, tmp_path: Path) -> None:
    text = "__device__ float other(float);\n" + WORK.format("other(x[1])")
    told = refused(text, compiler=compiler)
    assert "declared and nowhere defined. Include the source that defines it, or link both:\n" in told
    assert "\nnvcc -arch=ARCH -rdc=true -dlink -cubin ONE.cu OTHER.cu -o linked.cubin, for cuda_kernel." in told
    (tmp_path / "other.cu").write_text("__device__ float other(float v) { return 2 * v; }\n")
    assert compiles(f'{text}#include "other.cu"\n', folder=tmp_path, compiler=compiler)


def test_a_kernel_that_launches_kernels_leaves_that_to_the_test(compiler: str) -> None:
    inner = "__global__ void work(float* x) { x[1] = 2; }\n"
    told = refused(inner + "__global__ void outer(float* x) { work<<<1, 1>>>(x); }\n", compiler=compiler)
    assert told.endswith("Launch the inner kernel from the test, or give gpuperf a function that runs both.")
    assert compiles(inner, compiler=compiler)


@pytest.mark.parametrize(("instruction", "arch"), [("wgmma.fence", "sm_90a"), ("setmaxnreg.inc", "sm_120a")])
def test_an_instruction_of_an_architecture_with_all_its_features(instruction: str, arch: str) -> None:
    words = f"{instruction}.sync.aligned" + (".u32 64" if "setmaxnreg" in instruction else "")
    source = KernelSource(f'__global__ void work(float* x) {{ asm volatile("{words};"); x[0] = 1; }}', "work")
    with pytest.raises(CompileError, match=f'alone: arch="{arch}"'):
        compile_cubin(source, arch.removesuffix("a"))
    compile_cubin(source, arch)
