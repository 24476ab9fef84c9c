"""What of a source is no part of it: comments and blank lines, and only these."""

from __future__ import annotations

import pytest

from pytest_gpuperf.compile.source import without_comments

KERNEL = 'extern "C" __global__ void f(float* a) { a[0] = 1; }'


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
