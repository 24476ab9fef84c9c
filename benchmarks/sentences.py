"""Is the prose plain?  Lengths of the sentences of README and docs, words that have a plainer one, and pages far away.

    python benchmarks/sentences.py

Exit status 1 if sentences are too long, if README, docs or the plugin (its messages, docstrings and names) have a word
of ``FORBIDDEN``, or if a page of the docs is more than two links away from the index.  Code counts as one word.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MEDIAN, USUAL, LONGEST = 15, 30, 35  # words of the median sentence, of 95 % of them, and of all of them
FORBIDDEN = re.compile(
    r"\b(besides?|told|(?:stand|stood|stands) for|stand-ins?|(?:come|came|comes|coming) to|opponents?|lean(?:s|ing)|"
    r"taken back|canar(?:y|ies)|sentinels?|unheard|vanish\w*|(?:take|takes|took|taking) turns|in vain|distrust\w*|"
    r"will tell|outranked|weighed|unreached|nothing to tell|(?:on|its) record|for want of)\b",
    re.IGNORECASE,
)
PATTERNS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/README.md", "docs/results/README.md",
            "docs/tutorial/*.md", "docs/how-to/*.md", "docs/explanation/*.md", "docs/reference/*.md")  # fmt: skip


def texts(page: Path) -> Iterator[tuple[str, bool]]:
    """Each text of a page, and whether it is of sentences: no heading, and no cell of a table."""
    kind = ""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")):
        parts = ("code" if part.type == "code_inline" else part.content or " " for part in token.children or ())
        if token.type == "inline":
            yield "".join(parts), kind == "paragraph_open"
        kind = token.type


def far_pages() -> list[Path]:
    near = {DOCS / "README.md"}
    for page in (page for _ in range(2) for page in sorted(near)):
        near |= {(page.parent / link).resolve() for link in re.findall(r"\]\(([^)#\s]+\.md)", page.read_text())}
    return sorted({*DOCS.rglob("*.md")} - near)


def main() -> int:
    pages = [page for pattern in PATTERNS for page in sorted(ROOT.glob(pattern))]
    prose = [(page, *text) for page in pages for text in texts(page)]
    found = [(page, one) for page, text, whole in prose if whole for one in re.split(r"(?<=[.!?])\s+", text.strip())]
    lengths = sorted(len(sentence.split()) for _, sentence in found)
    lines = [(page, text) for page, text, _ in prose]
    lines += [(file, " ".join(file.read_text().split())) for file in (ROOT / "pytest_gpuperf").rglob("*.py")]
    problems = [f"{page}: too long: {sentence}" for page, sentence in found if len(sentence.split()) > LONGEST]
    words = [(file, text, word) for file, text in lines for word in FORBIDDEN.finditer(text)]
    problems += [
        f"{file}: {one[0]!r} in {text[max(one.start() - 60, 0) : one.end() + 60]!r}" for file, text, one in words
    ]
    problems += [f"{page}: more than two links away from the index" for page in far_pages()]
    middle, usual = statistics.median(lengths), lengths[int(0.95 * len(lengths))]
    print(f"{len(lengths)} sentences: median {middle:g} words, 95 % at most {usual}, all at most {lengths[-1]}")
    print(*problems, sep="\n")
    return int(bool(problems) or middle > MEDIAN or usual > USUAL)


if __name__ == "__main__":
    sys.exit(main())
