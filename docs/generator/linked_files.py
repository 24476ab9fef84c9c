"""A hook of MkDocs: files outside ``docs`` that a page links to become pages of the site.

In the repository such a link leads to the file itself.  The project has no public address that a site could link to
instead, so the site has a page under ``repository`` that shows the file, and the link leads there.  A link to what does
not exist is left as it is: MkDocs warns of it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

LINK = re.compile(r"\]\((?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")
FOLDER = "repository"
"""Of the site: where the pages lie."""
LANGUAGES = {".cu": "cuda", ".cuh": "cuda", ".py": "python"}
"""What a file is highlighted as, by its suffix."""
HEAD = "---\nsearch: {exclude: true}\n---\n\n"
"""Searches find the documentation, not the sources."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add a page of each file outside ``docs`` that a page links to, and of what such a page links to."""
    from mkdocs.structure.files import File, InclusionLevel

    docs = Path(config.docs_dir)
    waiting = [docs / page.src_uri for page in files.documentation_pages()]
    while waiting:
        source = waiting.pop()
        for match in LINK.finditer(source.read_text(encoding="utf-8")):
            file = linked_file(docs, source, match["path"])
            if file and not file.is_relative_to(docs) and files.get_file_from_path(uri_of(docs, file)) is None:
                text = shown(docs, file)
                page = File.generated(config, uri_of(docs, file), content=text, inclusion=InclusionLevel.NOT_IN_NAV)
                files.append(page)
                waiting += [file] if file.suffix == ".md" else []
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Let links of a page lead to where the site shows what they mean."""
    docs, here = Path(config.docs_dir), page.file.src_uri
    moved = page.file.generated_by is not None
    source = docs.parent / here.removeprefix(f"{FOLDER}/").removesuffix(".md") if moved else docs / here

    def rewritten(match: re.Match[str]) -> str:
        file = linked_file(docs, source, match["path"])
        if file is None or (file.is_relative_to(docs) and not moved):
            return match[0]
        there = os.path.relpath(uri_of(docs, file), Path(here).parent)
        return f"]({there}{match['anchor'] or ''})"

    return LINK.sub(rewritten, markdown) if source.suffix == ".md" else markdown


def linked_file(docs: Path, source: Path, link: str) -> Path | None:
    """The file of the repository that a link leads to, if there is one."""
    file = Path(os.path.normpath(source.parent / link))
    return file if file.is_file() and file.is_relative_to(docs.parent) else None


def uri_of(docs: Path, file: Path) -> str:
    """The page that shows a file, as MkDocs names it: relative to ``docs``."""
    if file.is_relative_to(docs):
        return file.relative_to(docs).as_posix()
    return f"{FOLDER}/{file.relative_to(docs.parent).as_posix()}.md"


def shown(docs: Path, file: Path) -> str:
    """A page of a file: Markdown as it is, all else as one block under the file's path."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return HEAD + text
    fence = "~" * (1 + max([2, *map(len, re.findall("~+", text))]))
    name = file.relative_to(docs.parent).as_posix()
    return f"{HEAD}# {name}\n\n{fence}{LANGUAGES.get(file.suffix, 'text')}\n{text}{fence}\n"
