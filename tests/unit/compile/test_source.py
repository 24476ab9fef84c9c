"""Options are passed on, or refused; comments are no part of a source, and headers are found by reading it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_gpuperf.compile.compile_errors import BadOption, CompileError
from pytest_gpuperf.compile.includes import Headers, headers_of, scan
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.source import INCLUDE, KernelSource, values, without_comments, without_folders
from pytest_gpuperf.compile.toolkit import toolkit_folders

KERNEL = 'extern "C" __global__ void f(float* a) { a[0] = 1; }'


def test_an_option_of_the_user_replaces_the_default_of_its_name() -> None:
    text = f"#if __cplusplus < 202002L\n#error old\n#endif\n{KERNEL}"
    compile_cubin(KernelSource(text, "f", options=("-std=c++20",)), "sm_90")


def test_folders_are_found_and_no_part_of_what_two_machines_have_in_common() -> None:
    for given in (["-I", "a b"], ["-I a b"], ["-Ia b"], ["--include-path=a b"], ["--include-path", "a b"]):
        assert values(INCLUDE, ["-DA", *given, "-DB"]) == ["a b"]
        assert without_folders(["-DA", *given, "-DB"]) == ["-DA", "-DB"]


def test_options_that_static_evidence_cannot_follow_are_refused_with_the_reason() -> None:
    for option in (
        "-arch=sm_80", "-arch", "--gpu-architecture=compute_90", "-gencode=arch=compute_90,code=sm_90", "-dlto",
        "-rdc=true", "-dc", "--pch", "-o=x.cubin", "-optf=flags.txt", "-G",
    ):  # fmt: skip
        with pytest.raises(BadOption, match=r"cannot be used here: \w+"):
            KernelSource("", "k", options=(option,)).check_options()


def test_other_options_are_passed_on_and_those_of_nvcc_told_by_name() -> None:
    for option in ("-rdc=false", "-DARCH=3", "-DOPTF", "-Gx", "--something-new=7"):
        KernelSource("", "k", options=(option,)).check_options()
    for option, words in (
        ("--extended-lambda", "An option of nvcc: leave it out"),
        ("-isystem=x", "by -I or headers="),
    ):
        with pytest.raises(BadOption, match=rf"(?s)unrecognized option {option}.*{words}"):
            compile_cubin(KernelSource(KERNEL, "f", options=(option,)), "sm_90")


@pytest.mark.parametrize(("line", "words"), [
    ('#error "WIDTH is undefined: the build defines it"', 'options=["-DWIDTH=..."]'),
    ("__device__ void g() { KERNEL_INSTANCE(1); }", 'If it is a macro: options=["-DKERNEL_INSTANCE=..."]'),
    ("#include <cub/cub.cuh>", "include one for the GPU alone, as\n<cub/block/block_reduce.cuh>, or compile with nvcc"),
    ('#line 1 "/cub/cub.cuh"\n#error "Including it is not supported when compiling with NVRTC"', "for the GPU alone"),
    ("static_assert(std::is_same<int, int>::value);", "If a kernel uses std::is_same, #include its header. If not: "),
    ("texture<float, 2> t;", "CUDA 12 dropped texture references: take a cudaTextureObject_t."),
    ("__global__ void g(int* a) { a[0] = __shfl_xor(a[1], 1); }", "__shfl_xor_sync(0xffffffff, ...)"),
    ("__global__ void g(int* a) { a[0] = __ballot(a[1]); }", "__ballot_sync(0xffffffff, ...)"),
    ("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1", "git lfs pull"),
])  # fmt: skip
def test_a_remedy_names_what_is_missing(line: str, words: str) -> None:
    with pytest.raises(CompileError) as raised:
        compile_cubin(KernelSource(f"{line}\n{KERNEL}", "f"), "sm_90")
    assert words in str(raised.value)


@pytest.mark.parametrize(("option", "words", "instead"), [
    ("-std=c++14", "Leave out -std=", "-std=c++17"),
    ("-Xptxas=-v,-O2", 'Name each option: "--ptxas-options=-v"', "--ptxas-options=-O2"),
])  # fmt: skip
def test_a_remedy_names_the_option_to_give_instead(option: str, words: str, instead: str) -> None:
    text = f"#include <cuda/std/climits>\n{KERNEL}"
    with pytest.raises(CompileError) as raised:
        compile_cubin(KernelSource(text, "f", options=(option,)), "sm_90")
    assert words in str(raised.value)
    compile_cubin(KernelSource(text, "f", options=(instead,)), "sm_90")


def test_several_options_in_one_text_are_told_apart() -> None:
    """The first would be a macro of the value ``1 -DB=2``."""
    for option in ("-DA=1 -DB=2", "-O3 --use_fast_math"):
        with pytest.raises(BadOption, match=re.escape(f"is several: write options={option.split()}")):
            KernelSource("", "k", options=(option,)).check_options()
    KernelSource("", "k", options=("-I/our files/x-y", "-DX=a - 1", "-D", "Y=-1")).check_options()


# --- comments ------------------------------------------------------------------------------------


def test_a_comment_makes_no_other_source_and_what_the_compiler_sees_stays() -> None:
    for same in (
        f"// a word\n{KERNEL}", f"/* two\n\nwords */{KERNEL}   \n\n\n", KERNEL.replace("{ ", "{ // why\n"),
        KERNEL.replace("a[0]", "/* the first */ a[0]"), f"{KERNEL} // it is 1'000",
    ):  # fmt: skip
        assert without_comments(same).split() == without_comments(KERNEL).split()
    for one, other in (
        ('x = "a // b";', 'x = "a // c";'), ('x = "a /* b */";', 'x = "a /* c */";'),
        ('x = R"(// b)";', 'x = R"(// c)";'), ('x = R"y()" // b)y";', 'x = R"y()" // c)y";'),
        ("x = '\"'; // \ny = 1;", "x = '\"'; // \ny = 2;"), ("a / b;", "a // b;"), ("a/**/b", "ab"),
        ("f(__LINE__);", "\nf(__LINE__);"), ("assert(a);", "// why\nassert(a);"), ("#line 5", "// why\n#line 5"),
    ):  # fmt: skip
        assert without_comments(one) != without_comments(other)


def written(folder: Path, **files: str) -> Path:
    """A folder with these headers: ``inner__one="..."`` is ``inner/one.h``."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.h"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def paths(found: Headers) -> set[Path]:
    return {path for _, _, path in found.found}


@pytest.mark.parametrize("line", [
    "#include <one.h>",
    '  #  include\t"one.h"  // why',
    '#inc\\\nlude "one.h"',
    '/* of several\n lines */ #include "one.h"',
    "#ifdef X\n# import <one.h>\n#endif",
    "#define MY_HAS_INCLUDE(X) __has_include(X)\n#if MY_HAS_INCLUDE(<one.h>)",
    'const char* s = R"x(/* )" )x";\n#include "one.h"\n/* */',
    '/* not closed\n#include "one.h"',
])  # fmt: skip
def test_every_spelling_of_an_include_is_seen(line: str) -> None:
    assert [name for name, _ in scan(line.encode()).names] == ["one.h"]


def test_headers_of_headers_are_found_in_the_first_folder_that_has_them(tmp_path: Path) -> None:
    three = written(tmp_path / "a", one='#include "inner/two.h"', inner__two='#include "three.h"\n#include "one.h"',
                    inner__three="")  # fmt: skip
    found = headers_of(b'#include "one.h"\n', [three, written(tmp_path / "b", one="other")], before=["more.h"])
    assert {name for name, _, _ in found.found} == {"one.h", "inner/two.h", "three.h"}
    assert paths(found) == {three / "one.h", three / "inner/two.h", three / "inner/three.h"}
    assert found.complete
    by_option = headers_of(b"", [three], before=["one.h"])
    assert paths(by_option) == paths(found)
    absolute = headers_of(f'#include "{three}/one.h"'.encode(), [tmp_path / "none"])
    assert three / "one.h" in paths(absolute)


@pytest.mark.skipif(not toolkit_folders(), reason="no CUDA headers here: neither a toolkit nor nvidia-cuda-runtime")
def test_headers_of_the_toolkit_leave_it_complete_and_are_told_from_the_users(tmp_path: Path) -> None:
    folders = [written(tmp_path, mine=""), *toolkit_folders()]
    found = headers_of(b"#include <cooperative_groups.h>\n#include <mine.h>", folders)
    assert found.complete
    assert len(found.found) > 100
    assert [name for name, _ in found.outside(toolkit_folders())] == ["mine.h"]


def test_two_dots_behind_a_linked_folder_lead_to_the_parent_of_what_is_linked(tmp_path: Path) -> None:
    """A header of the same name beside the link is not taken."""
    shared = written(tmp_path / "shared", ops__size='#include "../common.h"', common='#include "ops/size.h"')
    project = written(tmp_path / "project", common="")
    (project / "ops").symlink_to("../shared/ops")
    found = headers_of(b'#include "ops/size.h"', [project])
    assert paths(found) == {project / "ops/size.h", shared / "common.h", shared / "ops/size.h"}


def test_a_relative_folder_is_that_of_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, more__more="")
    monkeypatch.chdir(tmp_path)
    assert paths(headers_of(b'#include "more.h"', [Path("more")])) == {tmp_path / "more/more.h"}
