"""The fingerprint of a check: what it does counts, where it stands and how its variables are called do not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from pytest_gpuperf.workload.check_fingerprint import fingerprint


def check_of(text: str) -> Callable[[], Any]:
    names: dict[str, Any] = {}
    exec(compile(f"def check():\n{text}\n", "check.py", "exec"), names)
    found: Callable[[], Any] = names["check"]
    return found


def test_no_check_has_none() -> None:
    assert fingerprint(None) == ""


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("    return close(a, b, 1e-3)", "\n\n    return close(a, b, 1e-3)", True),
        ("    x = 1\n    return x", "    y = 1\n    return y", True),
        ("    return close(a, b, 1e-3)", "    return close(a, b, 1e-2)", False),
        ("    return close(a, b)", "    return close(a, c)", False),
        ("    return all(x for x in a)", "    return all(not x for x in a)", False),
        ("    assert a == b", "    pass", False),
        ("    return a in {'x', 'y', 'z'}", "    return a in {'z', 'x', 'y'}", True),
    ],
)
def test_what_it_does_counts(one: str, other: str, *, same: bool) -> None:
    assert (fingerprint(check_of(one)) == fingerprint(check_of(other))) is same


def test_a_partial_is_what_it_calls() -> None:
    check = check_of("    return 1")
    assert fingerprint(functools.partial(check)) == fingerprint(check)


def test_a_callable_without_code_is_known_by_its_type() -> None:
    assert fingerprint(len) == "builtin_function_or_method"  # type: ignore[arg-type]
