"""Messages send their reader to pages that come with the package, and the page is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_pages import ROOT, titles

MODULES = sorted((ROOT / "pytest_gpuperf").rglob("*.py"))
KINDS = ("tutorial", "how-to", "reference", "explanation")
SHIPPED = {str(page.relative_to(ROOT)): page for kind in KINDS for page in (ROOT / "docs" / kind).glob("*.md")}
CITED = re.compile(r"\b(docs/[\w/.-]*\w)(?:, '([^']+)')?")


def said(source: str) -> Iterator[str]:
    """Texts of a module that a user may come to read: all but docstrings."""
    tree = ast.parse(source)
    silent = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in silent:
            yield node.value


def wrong(source: str) -> list[str]:
    """Citations of a module that lead nowhere where the package is installed and no repository is."""
    found = []
    for text in said(source):
        for page, section in CITED.findall(text):
            there = SHIPPED.get(page)
            if there is None or (section and section not in [title for _, title in titles(there)]):
                found.append(f"{page} {section}".strip())
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_pages_that_messages_cite_come_with_the_package(module: Path) -> None:
    assert wrong(module.read_text(encoding="utf-8")) == []


def test_there_are_messages_that_cite_a_page() -> None:
    texts = [text for module in MODULES for text in said(module.read_text(encoding="utf-8"))]
    assert len([text for text in texts if CITED.search(text)]) >= 2


def test_a_citation_that_leads_nowhere_is_noticed() -> None:
    source = (
        '"""See docs/how-to/gone.md."""\n'
        "A = 'see docs/how-to/ci.md'\n"
        "B = f'{A}: docs/how-to/crystal-ball.md'\n"
        "C = \"docs/how-to/accepting-changes.md, 'The crystal ball'\"\n"
    )
    assert sorted(wrong(source)) == ["docs/how-to/accepting-changes.md The crystal ball", "docs/how-to/crystal-ball.md"]
