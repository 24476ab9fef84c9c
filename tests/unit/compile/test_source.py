"""Options are passed as users write them, and some are refused; comments are no part of a source."""

from __future__ import annotations

import pytest

from pytest_gpuperf.compile.compile_errors import BadOption
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.source import INCLUDE, KernelSource, values, without_comments, without_folders

KERNEL = 'extern "C" __global__ void f(float* a) { a[0] = 1; }'


def test_an_option_of_the_user_replaces_the_default_of_its_name() -> None:
    text = f"#if __cplusplus < 202002L\n#error old\n#endif\n{KERNEL}"
    compile_cubin(KernelSource(text, "f", options=("-std=c++20",)), "sm_90")


@pytest.mark.parametrize(
    "given", [["-I", "a b"], ["-I a b"], ["-Ia b"], ["--include-path=a b"], ["--include-path", "a b"]]
)
def test_folders_are_found_and_no_part_of_what_two_machines_have_in_common(given: list[str]) -> None:
    assert values(INCLUDE, ["-DA", *given, "-DB"]) == ["a b"]
    assert without_folders(["-DA", *given, "-DB"]) == ["-DA", "-DB"]


@pytest.mark.parametrize(
    "option",
    [
        "-arch=sm_80", "-arch", "--gpu-architecture=compute_90", "-gencode=arch=compute_90,code=sm_90", "-dlto",
        "-rdc=true", "-dc", "--pch", "-o=x.cubin", "-optf=flags.txt",
    ],
)  # fmt: skip
def test_options_that_static_evidence_cannot_follow_are_refused_with_the_reason(option: str) -> None:
    with pytest.raises(BadOption, match=r"cannot be used here: \w+"):
        KernelSource("", "k", options=(option,)).check_options()


def test_other_options_are_passed_on_and_those_of_nvcc_told_by_name() -> None:
    for option in ("-rdc=false", "-DARCH=3", "-DOPTF", "-G", "--something-new=7"):
        KernelSource("", "k", options=(option,)).check_options()
    with pytest.raises(
        BadOption, match=r"(?s)unrecognized option --extended-lambda.*If it is one of nvcc: leave it out"
    ):
        compile_cubin(KernelSource(KERNEL, "f", options=("--extended-lambda",)), "sm_90")


# --- comments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        f"// a word\n{KERNEL}",
        f"/* two\n\nwords */{KERNEL}   \n\n\n",
        KERNEL.replace("{ ", "{ // why\n"),
        KERNEL.replace("a[0]", "/* the first */ a[0]"),
        f"{KERNEL} // it is 1'000",
    ],
)
def test_a_comment_makes_no_other_source(other: str) -> None:
    assert without_comments(other).split() == without_comments(KERNEL).split()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('x = "a // b";', 'x = "a // c";'),
        ('x = "a /* b */";', 'x = "a /* c */";'),
        ('x = R"(// b)";', 'x = R"(// c)";'),
        ('x = R"y()" // b)y";', 'x = R"y()" // c)y";'),
        ("x = '\"'; // \ny = 1;", "x = '\"'; // \ny = 2;"),
        ("a / b;", "a // b;"),
        ("f(__LINE__);", "\nf(__LINE__);"),
        ("assert(a);", "// why\nassert(a);"),
        ("#line 5", "// why\n#line 5"),
        ("a b", "ab"),
        ("a/**/b", "ab"),
    ],
)
def test_what_the_compiler_sees_stays(one: str, other: str) -> None:
    assert without_comments(one) != without_comments(other)
