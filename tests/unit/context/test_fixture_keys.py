"""What shared fixtures are called on record, where pytest's plan of a test tells nothing or something odd."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

from pytest_gpuperf.context.fixture_keys import defining_file, shared_keys


def plain(cuda_kernel: Any) -> None: ...


def test_an_item_of_another_kind_shares_nothing() -> None:
    item: Any = SimpleNamespace(nodeid="README.md::README.md")
    assert list(shared_keys(item)) == []


def test_the_file_is_that_of_the_function_itself() -> None:
    @functools.wraps(plain)
    def wrapped(cuda_kernel: Any) -> None: ...

    class Holder:
        def method(self, cuda_kernel: Any) -> None: ...

    for function in (plain, wrapped, Holder().method):
        found = defining_file(SimpleNamespace(func=function))  # type: ignore[arg-type]
        assert found is not None
        assert found.name == "test_fixture_keys.py"
    for other in (len, functools.partial(plain), eval("lambda: 1")):
        assert defining_file(SimpleNamespace(func=other)) is None  # type: ignore[arg-type]
