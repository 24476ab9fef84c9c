"""What the sources say of themselves: docstrings of classes, functions and attributes, as Markdown."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

NOTE = "Made by `python docs/generator` from the sources: change those, and run it again."


def markdown(docstring: str | None) -> str:
    """A docstring as Markdown: one backtick where there are two, one line for each paragraph or list item."""
    paragraphs = re.split(r"\n\s*\n|\n(?=\* )", inspect.cleandoc(docstring or ""))
    joined = [_linked(re.sub(r"\s+", " ", paragraph).strip().replace("``", "`")) for paragraph in paragraphs]
    text = ""
    for before, paragraph in zip(["", *joined], joined, strict=False):
        text += ("\n" if before.startswith("* ") and paragraph.startswith("* ") else "\n\n") + paragraph
    return text.strip()


def _linked(text: str) -> str:
    return re.sub(r'docs/([\w-]+/([\w-]+)\.md)(, "[^"]+")?', r"[\2](../\1)", text)


def in_line(docstring: str | None) -> str:
    """The same on one line."""
    return re.sub(r"\s*\n\s*", " ", markdown(docstring))


def body_of(thing: type | ModuleType) -> list[ast.stmt]:
    """Statements of a class or a module."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    if isinstance(thing, ModuleType):
        return tree.body
    (found,) = tree.body
    assert isinstance(found, ast.ClassDef)
    return found.body


def documented(body: Sequence[ast.stmt]) -> Iterable[tuple[ast.stmt, str]]:
    """Each statement with the string that stands behind it, which documents an attribute; empty where none does."""
    for node, behind in zip(body, [*body[1:], None], strict=True):
        text = behind.value.value if isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant) else ""
        yield node, text if isinstance(text, str) else ""


def attribute_docs(thing: type | ModuleType) -> dict[str, str]:
    """Docstrings of attributes or constants by name, on one line; empty where there is none."""
    found = {}
    for node, text in documented(body_of(thing)):
        targets: list[Any] = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        found.update({target.id: in_line(text) for target in targets if isinstance(target, ast.Name)})
    return found


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
