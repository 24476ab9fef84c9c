"""What fixtures that tests share are called on record: ``conftest.py::fixture kernels[fast]``, as in node ids.

Made of what pytest itself tells instances of a fixture apart by: the node that it lives as long as, its name, and the
parameters that it depends on.  Known as soon as tests are collected, before any fixture is set up.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_gpuperf.model.fixture_names import fixture_test

if TYPE_CHECKING:
    Fixture = pytest.FixtureDef[Any]

COMPILES = "cuda_kernel"
"""The fixture that compiles: whoever shares a kernel asks for it, if by another fixture."""


def shared_keys(item: pytest.Item) -> Iterator[str]:
    """Of the fixtures that a test shares with others and that may compile."""
    plan = _plan(item)
    for name in plan if COMPILES in plan else ():
        fixture = plan[name][-1]
        if name != COMPILES and fixture.scope != "function" and {COMPILES, "request"} & _behind(plan, name):
            node = _lives_as_long_as(item, fixture)
            key = key_of(item, fixture, node) if node is not None else None
            if key is not None:
                yield key


def _plan(item: pytest.Item) -> Mapping[str, Sequence[Fixture]]:
    """The fixtures that a test asks for, the nearest last; pytest has no public name for it."""
    return getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})


def _behind(plan: Mapping[str, Sequence[Fixture]], name: str) -> set[str]:
    """A fixture and those that it depends on, by their names."""
    found, left = {name}, [name]
    while left:
        asked = {one for fixture in plan.get(left.pop(), ()) for one in fixture.argnames} - found
        found |= asked
        left += asked
    return found


def _lives_as_long_as(item: pytest.Item, fixture: Fixture) -> Any:
    """The node of pytest's tree; None where it is the test itself."""
    if fixture.scope == "session":
        return item.session
    if fixture.scope == "package":
        packages = (node for node in item.listchain() if isinstance(node, pytest.Package))
        return next((node for node in packages if node.nodeid == fixture.baseid), item.session)
    return item.getparent(pytest.Module if fixture.scope == "module" else pytest.Class)


def key_of(item: pytest.Item, fixture: Fixture, node: Any) -> str | None:
    """Where the kernels of an instance of a fixture are on record; None if its file is not below pytest's root.

    A session's is named by the file that defines it, a package's by its ``__init__.py``, else by the test file.
    """
    root, inside = item.config.rootpath, ""
    if isinstance(node, pytest.Package):
        module = (node.path.relative_to(root) / "__init__.py").as_posix()
    elif isinstance(node, pytest.Session):
        file = defining_file(fixture)
        if file is None or not file.is_relative_to(root):
            return None
        module = file.relative_to(root).as_posix()
    else:
        module, _, inside = node.nodeid.partition("::")
    return f"{module}::{fixture_test(fixture.argname, _labels(item, fixture.argname), inside)}"


def _labels(item: pytest.Item, name: str) -> list[str]:
    """The parameters that a test has the fixture with, its own and those of the fixtures that it depends on."""
    plan, asked = _plan(item), getattr(item, "callspec", None)
    if asked is None:
        return []
    names = [one for one in sorted(_behind(plan, name)) if one in asked.params]
    return [_label(plan.get(one, [None])[-1], one, asked.indices[one], asked.params[one]) for one in names]


def _label(fixture: Fixture | None, name: str, number: int, value: Any) -> str:
    """What tells one parameter of a fixture from its others: its id, its value, or its number."""
    given = _at(fixture and fixture.params, number), _at(fixture and fixture.ids, number)
    for named in (getattr(given[0], "id", None), given[1], value, getattr(value, "__name__", None)):
        if isinstance(named, str | int | float):  # bool is an int
            return str(named)
    return f"{name}{number}"


def _at(values: Any, number: int) -> Any:
    return values[number] if isinstance(values, Sequence) and number < len(values) else None


def defining_file(fixture: Fixture) -> Path | None:
    """The file with the fixture's function; None of what is no Python function."""
    function: Any = inspect.unwrap(fixture.func)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    path = Path(code.co_filename) if code is not None else None
    return path.resolve() if path is not None and path.is_file() else None
