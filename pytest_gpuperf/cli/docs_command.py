"""``gpuperf docs``: the documentation that came with the package, on the terminal."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable
from pathlib import Path

from pytest_gpuperf.cli.shipped import shipped

KINDS = ("tutorial", "how-to", "reference", "explanation")


class DocsError(Exception):
    """There is no such page; the message names those that there are."""


PROBLEMS = (DocsError, OSError)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    return run(parsed.page, write=write)


def run(page: str | None, *, write: Callable[[str], object]) -> int:
    """Print one page, or the list of all; returns the exit status, 0.  Raises one of ``PROBLEMS``."""
    folder = shipped("docs", "docs")
    pages = {f"{kind}/{path.stem}": path for kind in KINDS for path in sorted((folder / kind).glob("*.md"))}
    if page is None:
        width = max(map(len, pages))
        write("".join(f"{name.ljust(width)}  {_title(path)}\n" for name, path in pages.items()))
        return 0
    wanted = page.removeprefix("docs/").partition("#")[0].removesuffix(".md")
    found = [path for name, path in pages.items() if wanted in (name, name.partition("/")[2])]
    if not found:
        like = [name for name in pages if wanted in name] or difflib.get_close_matches(wanted, pages, n=3, cutoff=0.4)
        hint = f"; close to it: {', '.join(like)}" if like else ""
        raise DocsError(f"there is no page {page}{hint}; all of them: gpuperf docs")
    write(found[0].read_text(encoding="utf-8"))
    return 0


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as opened:
        return opened.readline().lstrip("# ").rstrip()
