"""What pages, messages and code send their reader to is there: files, headings, and pages that the package has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_pages import PAGES, ROOT, anchors, links, titles

PACKAGE = ROOT / "pytest_gpuperf"
SOURCES = [
    path
    for folder in ("pytest_gpuperf", "benchmarks", "example_suite", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if path != Path(__file__)
]
KINDS = ("tutorial", "how-to", "reference", "explanation")
SHIPPED = {str(page.relative_to(ROOT)): page for kind in KINDS for page in (ROOT / "docs" / kind).glob("*.md")}
CITED = re.compile(r"""\b(docs/[\w/-]+\.md)((?:,?\s+(?:and\s+)?(?:"[^"]+"|'[^']+'))*)""")
ELSEWHERE = re.compile(r"\bDESIGN\b|[Dd]esign notes|\bstatistics(?:\.md)? \d")


def lost_links(page: Path) -> list[str]:
    """Links of a page into the repository that lead nowhere."""
    found = []
    for link in links(page):
        parts = urlsplit(link)
        there = page.parent / unquote(parts.path) if parts.path else page
        if parts.scheme or parts.netloc:
            continue
        if not there.exists() or (parts.fragment and parts.fragment not in anchors(there.resolve())):
            found.append(link)
    return found


def lost(text: str, pages: Mapping[str, Path] = SHIPPED) -> list[str]:
    """Pages that a text names and that are not there, and headings that they lack."""
    found = []
    for name, named in CITED.findall(text):
        known = [re.sub(r"^\d+\. ", "", title) for _, title in titles(pages[name])] if name in pages else []
        found += [name] if name not in pages else []
        wanted = (re.sub(r"\s+", " ", one)[1:-1] for one in re.findall(r"\"[^\"]+\"|'[^']+'", named))
        found += [f"{name}: {one}" for one in wanted if not any(title.startswith(one) for title in known)]
    return found


def said(source: str) -> Iterator[str]:
    """Texts of a module that a user may come to read: all but docstrings."""
    tree = ast.parse(source)
    silent = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in silent:
            yield node.value


def test_links_of_pages_lead_somewhere() -> None:
    assert {str(page.relative_to(ROOT)): links for page in PAGES if (links := lost_links(page))} == {}


def test_pages_that_messages_cite_come_with_the_package() -> None:
    """Where it is installed, no repository is."""
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.txt")]
    for path in PACKAGE.rglob("*.py"):
        texts += said(path.read_text(encoding="utf-8"))
    assert any(map(CITED.search, texts))
    assert [found for text in texts if (found := lost(text))] == []


def test_code_refers_to_pages_and_headings_that_are_there_and_to_nothing_else() -> None:
    every = {str(page.relative_to(ROOT)): page for page in PAGES}
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        found = ELSEWHERE.findall(text) + (lost(text, every) if path.is_relative_to(PACKAGE) else [])
        assert found == [], path


def test_what_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A `title`, twice\n\n# A `title`, twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md#a-title-twice), [b](there.md#a-title-twice-1), [c](https://example.org/x), `[d](code.md)`\n"
        "[e](there.md#title), [f](gone.md), ![g](gone.svg) and [h][h]\n\n[h]: #here\n"
    )
    assert lost_links(page) == ["there.md#title", "gone.md", "gone.svg", "#here"]
    source = (
        '"""See docs/how-to/gone.md."""\n'
        "A = 'see docs/how-to/ci.md'\n"
        "B = f'{A}: docs/how-to/crystal-ball.md'\n"
        "C = \"docs/explanation/statistics.md, 'The crystal ball'\"\n"
    )
    assert [found for text in said(source) if (found := lost(text))] == [
        ["docs/explanation/statistics.md: The crystal ball"], ["docs/how-to/crystal-ball.md"]
    ]  # fmt: skip
