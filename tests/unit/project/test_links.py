"""Links of every page of the repository lead to a file that is there, and to a heading that it has."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_pages import PAGES, ROOT, anchors, links


def lost(page: Path) -> list[str]:
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


def test_links_lead_somewhere() -> None:
    assert {str(page.relative_to(ROOT)): links for page in PAGES if (links := lost(page))} == {}


def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A `title`, twice\n\n# A `title`, twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md#a-title-twice), [b](there.md#a-title-twice-1), [c](https://example.org/x), `[d](code.md)`\n"
        "[e](there.md#title), [f](gone.md), ![g](gone.svg) and [h][h]\n\n[h]: #here\n"
    )
    assert lost(page) == ["there.md#title", "gone.md", "gone.svg", "#here"]
