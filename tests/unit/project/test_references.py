"""What the code refers a reader to can be found in this repository."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCES = sorted(
    path
    for folder in ("pytest_gpuperf", "benchmarks", "example_suite", "tests")
    for path in (ROOT / folder).rglob("*.py")
)
REFERENCE = re.compile(r'docs/([\w/-]+)\.md,\s+((?:"[^"]+"(?:\s+and\s+)?)+)')
ELSEWHERE = re.compile(r"\bDESIGN\b|[Dd]esign notes|\bstatistics(?:\.md)? \d")


def headings(page: str) -> list[str]:
    """Of a page of the documentation, without their numbers."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return [re.sub(r"^\d+\. ", "", heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]


def lost(text: str) -> list[str]:
    """References of a module to headings that no page has."""
    return [
        f"{page}: {title}"
        for page, titles in REFERENCE.findall(text)
        for title in re.findall(r'"([^"]+)"', re.sub(r"\s+", " ", titles))
        if not any(heading.startswith(title) for heading in headings(page))
    ]


def test_sections_of_the_documentation_that_code_names_are_there() -> None:
    found = {str(path): lost(path.read_text(encoding="utf-8")) for path in SOURCES if path != Path(__file__)}
    assert {path: sections for path, sections in found.items() if sections} == {}


def test_no_module_sends_its_reader_to_a_document_that_is_not_here() -> None:
    found = {
        str(path): ELSEWHERE.findall(path.read_text(encoding="utf-8")) for path in SOURCES if path != Path(__file__)
    }
    assert {path: words for path, words in found.items() if words} == {}


def test_a_section_that_is_not_there_is_noticed() -> None:
    text = 'See docs/explanation/statistics.md, "Paired blocks" and "The crystal ball".'
    assert lost(text) == ["explanation/statistics: The crystal ball"]
