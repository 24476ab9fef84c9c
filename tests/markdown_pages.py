"""The project's Markdown pages, as markdown-it reads them: links, anchors and blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[1]
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "example_suite").rglob("*.md")})


class Block(NamedTuple):
    """A block of code of a page."""

    page: str
    """Its path from the repository's root."""
    line: int
    """Where it begins, from 1."""
    language: str
    text: str
    section: str
    """The heading above it."""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@cache
def tokens(page: Path) -> tuple[Token, ...]:
    return tuple(MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")))


def links(page: Path) -> Iterator[str]:
    """Where links and pictures of a page lead, other addresses than the repository's own included."""
    for token in tokens(page):
        for child in token.children or ():
            target = child.attrGet("src" if child.type == "image" else "href")
            if target:
                yield str(target)


def titles(page: Path) -> Iterator[tuple[int, str]]:
    """Headings of a page as text without its marks, with their line from 0."""
    for before, token in zip(tokens(page), tokens(page)[1:], strict=False):
        if before.type == "heading_open" and before.map:
            yield before.map[0], "".join(child.content for child in token.children or ())


@cache
def anchors(page: Path) -> frozenset[str]:
    """Anchors of a page, spelt as hosts of repositories spell them and as mkdocs.yml asks for."""
    found: list[str] = []
    for _, title in titles(page):
        slug = re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-")
        found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
    return frozenset(found)


def blocks(page: Path) -> Iterator[Block]:
    """Blocks of code of a page, indented ones included: they have no language."""
    for token in tokens(page):
        if token.type in ("fence", "code_block") and token.map:
            above = [title for line, title in titles(page) if line < token.map[0]]
            name = page.relative_to(ROOT).as_posix()
            yield Block(name, token.map[0] + 1, token.info.strip(), token.content, above[-1] if above else "")
