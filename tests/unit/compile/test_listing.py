"""Source lines of instructions, for explanations: whose they are, and when none is named."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

import pytest

from pytest_gpuperf.compile.compile_errors import BadCubin
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.listing import Listing, lines_of
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.line_table import line_table
from pytest_gpuperf.compile.source import LINE_INFO, KernelSource
from pytest_gpuperf.compile.warp_model.estimate import KernelCode
from pytest_gpuperf.model.evidence import KernelBinary

ARCH = "sm_90"
KERNEL = """\
extern "C" __global__ void kernel(float* p)
{
    float x = p[threadIdx.x];
    p[threadIdx.x] = x / p[32];
}
"""
OF_OTHERS = """\
#line 5 "{of}"
__device__ __forceinline__ float twice(float x) {{ return 1.7f * x / (x + 1.0f); }}
#line 1 "/project/kernels/own.cu"
extern "C" __global__ void kernel(float* p) {{
    p[threadIdx.x] =
        twice(p[threadIdx.x]);
}}
"""


def lines(made: KernelBinary, listing: Listing | None, root: Path = Path("/project")) -> set[tuple[str, int]]:
    return set(lines_of(KernelCode(made.cubin, "kernel", ARCH), made.profile, listing, root, None).values())


@pytest.mark.parametrize(
    ("of", "named"), [("/project/lib.cuh", "lib.cuh"), ("/venv/site-packages/lib.h", ""), ("/elsewhere/lib.h", None)]
)
def test_inlined_function_has_its_own_line_unless_it_is_of_a_package(of: str, named: str | None) -> None:
    made = compile_kernel(KernelSource(OF_OTHERS.format(of=of), "kernel", options=(LINE_INFO,)), ARCH)
    found = lines(made, None)
    assert {("kernels/own.cu", 2), ("kernels/own.cu", 3)} <= found
    assert {file for file, _ in found} == {"kernels/own.cu", of if named is None else named} - {""}


@pytest.mark.parametrize("known", ["crt/host_defines.h", "cmath"])
def test_headers_of_cuda_and_cpp_have_no_line_whichever_compiler_has_them(tmp_path: Path, known: str) -> None:
    header = tmp_path / "include" / known
    header.parent.mkdir(parents=True)
    header.touch()
    (tmp_path / "bin").mkdir()
    text = OF_OTHERS.format(of=f"{tmp_path}/bin/../include/cccl/lib.h")
    found = lines(compile_kernel(KernelSource(text, "kernel", options=(LINE_INFO,)), ARCH), None)
    assert {file for file, _ in found} == {"kernels/own.cu"}


@pytest.mark.parametrize("indent", ["", "    "])
def test_source_has_the_lines_of_its_file_or_of_the_test_that_it_stands_in(tmp_path: Path, indent: str) -> None:
    """Of one that the test makes at run time no line is named."""
    source, test, path = KernelSource(KERNEL, "kernel"), tmp_path / "test_a.py", tmp_path / "below" / "k.cu"
    test.write_text(f'import x\n\nTEXT = """{indent}{KERNEL.replace("float", indent + "float")}"""\n', encoding="utf-8")
    made = compile_kernel(source, ARCH)
    found = lines(made, Listing(source, test), tmp_path)
    assert found == (set() if indent else {("test_a.py", number) for number in (3, 5, 6, 7)})
    of_file = Listing(dataclasses.replace(source, path=path), test)
    assert lines(made, of_file, tmp_path) == {("below/k.cu", number) for number in (1, 3, 4, 5)}


def test_lines_of_other_machine_code_are_not_taken(tmp_path: Path) -> None:
    made = compile_kernel(KernelSource(KERNEL, "kernel"), ARCH)
    for text in (KERNEL.replace("x /", "x *"), KERNEL.replace("}", ""), KERNEL.replace("kernel", "other")):
        assert lines(made, Listing(KernelSource(text, "kernel", path=tmp_path / "k.cu"), tmp_path)) == set()
    assert lines(made, None) == set()


def test_a_changed_line_table_is_read_or_refused() -> None:
    cubin = compile_kernel(KernelSource(KERNEL, "kernel", options=(LINE_INFO,)), ARCH).cubin
    table = read_cubin(cubin).elf.section(".debug_line")
    assert table is not None
    begin = cubin.index(table.data)
    for at in range(begin, begin + table.size):
        for value in (0, 1, 0x7F, 0x80, 0xFF):
            with contextlib.suppress(BadCubin):
                line_table(cubin[:at] + bytes([value]) + cubin[at + 1 :], "kernel")
