"""docs/reference/api.md: a section for each name that the package exports."""

from __future__ import annotations

import ast
import copy
import enum
import re
from collections.abc import Iterable, Iterator
from typing import Any

from source_text import NOTE, body_of, documented, in_line, markdown, table

import pytest_gpuperf
from pytest_gpuperf.api import fixtures

HEAD = f"""\
# Public names

```python
from pytest_gpuperf import Gpu, GpuPerf, KernelCompiler
```

What a test may import and annotate. Each name is imported when it is first used, so importing the package costs
nothing. Whatever is not on this page may change without notice. {NOTE}
"""
GROUPS = {
    "What the fixtures are": "",
    "What they return": "",
    "Evidence and verdicts": "Frozen records: what was found, and what the gate says of it.",
    "Errors and early ends": "`StaticOnly`, `CheckedOnly` and `CountersMissing` end a test without failing it.",
    "Version": "",
}
INTERNAL = frozenset({
    "binaries", "binary", "check_variables", "configuration", "device", "facts", "fill", "identity", "loaded",
    "measured_peaks", "native", "peak", "records", "run_with", "targets", "values_for", "variable_entries", "variables",
})  # fmt: skip
"""Members that the plugin itself uses."""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for group, words in GROUPS.items():
        if group == "What the fixtures are":
            words = table(["fixture", "is a", "what for"], _fixtures())
        parts.append("\n".join(part for part in (f"## {group}\n", words and f"{words}\n") if part))
        parts += [_section(name) for name in pytest_gpuperf.__all__ if _group(name) == group]
    return "\n".join(parts)


def _fixtures() -> Iterator[list[str]]:
    for node in body_of(fixtures):
        if isinstance(node, ast.FunctionDef) and "pytest.fixture" in " ".join(map(ast.unparse, node.decorator_list)):
            kind = re.sub(r"Iterator\[(\w+)\]", r"\1", ast.unparse(node.returns or ast.Constant(None)))
            first = (ast.get_docstring(node) or "").partition("\n\n")[0]
            yield [f"`{node.name}`", f"[`{kind}`](#{kind.lower()})", in_line(first)]


def _group(name: str) -> str:
    of_fixtures, returned, records, errors, version = GROUPS
    thing = getattr(pytest_gpuperf, name)
    if not isinstance(thing, type):
        return version
    if issubclass(thing, Exception):
        return errors
    home = thing.__module__.removeprefix("pytest_gpuperf.")
    if thing.__name__ == "Gpu" or home.startswith("api."):
        return of_fixtures
    return records if home.startswith("model.") else returned


def _section(name: str) -> str:
    thing = getattr(pytest_gpuperf, name)
    if not isinstance(thing, type):
        return f"### `{name}`\n\nThe version of the package, text such as `{thing}`.\n"
    lines = [f"### `{name}`\n", f"{markdown(thing.__doc__)}\n"]
    if issubclass(thing, enum.Enum):
        lines.append("Its values are in [verdicts](verdicts.md).\n")
    if issubclass(thing, Exception):
        bases = ", ".join(f"`{base.__name__}`" for base in thing.__bases__)
        lines.append(f"Derived from {bases}.\n")
    members = list(_members(thing))
    return "\n".join([*lines, *members, *([""] if members else [])])


def _members(thing: type) -> Iterator[str]:
    """A line for each public member that has a docstring, inherited ones of the package behind the class's own."""
    seen = set(INTERNAL)
    for owner in thing.__mro__:
        if owner.__module__.startswith("pytest_gpuperf.") and owner.__name__ != "Record":
            for name, line in _own_members(owner):
                if name not in seen:
                    seen.add(name)
                    yield line


def _own_members(owner: type) -> Iterator[tuple[str, str]]:
    for node, text in documented(body_of(owner)):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            yield from _set_by_init(node)
        elif isinstance(node, ast.FunctionDef) and _is_public(node.name):
            words = in_line(ast.get_docstring(node))
            if words or node.name == "__call__":
                yield node.name, f"- `{_signature(node)}`{': ' + words if words else ''}"
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_public(node.target.id):
            yield node.target.id, _attribute(node.target.id, ast.unparse(node.annotation), text)


def _set_by_init(init: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    for node, text in documented(init.body):
        target: Any = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if text and isinstance(target, ast.Attribute) and _is_public(target.attr):
            yield target.attr, _attribute(target.attr, "", text)


def _attribute(name: str, annotation: str, text: str) -> str:
    words = in_line(text)
    return f"- `{name}{': ' + annotation if annotation else ''}`{': ' + words if words else ''}"


def _is_public(name: str) -> bool:
    return name == "__call__" or not name.startswith("_")


def _signature(node: ast.FunctionDef) -> str:
    returned = ast.unparse(node.returns) if node.returns else ""
    if _is_property(node.decorator_list):
        return f"{node.name}: {returned}"
    given = copy.deepcopy(node.args)
    given.args = given.args[1:]
    name = "" if node.name == "__call__" else node.name
    return f"{name}({ast.unparse(given)}) -> {returned}"


def _is_property(decorators: Iterable[ast.expr]) -> bool:
    return any(ast.unparse(one) in ("property", "cached_property") for one in decorators)
