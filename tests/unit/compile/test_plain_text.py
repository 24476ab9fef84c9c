"""What of a source is no part of it: comments and blank lines, and only these."""

from __future__ import annotations

import pytest

from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource, without_comments

KERNEL = 'extern "C" __global__ void f(float* a) { a[0] = 1; }'


@pytest.mark.parametrize(
    "other",
    [
        f"// a word\n{KERNEL}",
        f"/* two\n\nwords */{KERNEL}   \n\n\n",
        KERNEL.replace("{ ", "{ // why\n"),
        KERNEL.replace("a[0]", "/* the first */ a[0]"),
    ],
)
def test_a_comment_makes_no_other_source(other: str) -> None:
    one, two = (compile_kernel(KernelSource(text=text, name="f"), "sm_90") for text in (KERNEL, other))
    assert "word" not in without_comments(other)
    if other.count("{ ") or "/* the" not in other:
        assert without_comments(other).split() == without_comments(KERNEL).split()
    assert one.profile.code_hash == two.profile.code_hash


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


def test_a_number_with_separators_is_no_text() -> None:
    assert without_comments("n = 1'000; // a thousand") == without_comments("n = 1'000;")
