"""Messages send their reader to pages that come with the package, and the page is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from markdown_pages import ROOT, titles

MODULES = sorted((ROOT / "pytest_gpuperf").rglob("*.py"))
TEXTS = sorted((ROOT / "pytest_gpuperf").rglob("*.txt"))
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


def wrong(texts: Iterable[str]) -> list[str]:
    """Citations that lead nowhere where the package is installed and no repository is."""
    found = []
    for text in texts:
        for page, section in CITED.findall(text):
            there = SHIPPED.get(page)
            if there is None or (section and section not in [title for _, title in titles(there)]):
                found.append(f"{page} {section}".strip())
    return found


def test_pages_that_messages_cite_come_with_the_package() -> None:
    texts = [text for module in MODULES for text in said(module.read_text(encoding="utf-8"))]
    texts += [path.read_text(encoding="utf-8") for path in TEXTS]
    assert any(CITED.search(text) for text in texts)
    assert wrong(texts) == []


def test_a_citation_that_leads_nowhere_is_noticed() -> None:
    source = (
        '"""See docs/how-to/gone.md."""\n'
        "A = 'see docs/how-to/ci.md'\n"
        "B = f'{A}: docs/how-to/crystal-ball.md'\n"
        "C = \"docs/how-to/accepting-changes.md, 'The crystal ball'\"\n"
    )
    assert sorted(wrong(said(source))) == [
        "docs/how-to/accepting-changes.md The crystal ball",
        "docs/how-to/crystal-ball.md",
    ]
