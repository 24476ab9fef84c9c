"""The pages of docs/reference are what their generator makes of the sources."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_committed_pages_are_what_the_sources_make() -> None:
    """``python docs/generator`` writes them anew."""
    command = [sys.executable, str(ROOT / "docs" / "generator"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_every_page_of_the_reference_is_made() -> None:
    pages = (ROOT / "docs" / "generator" / "pages.py").read_text(encoding="utf-8")
    committed = sorted(page.name for page in (ROOT / "docs" / "reference").iterdir())
    assert [name for name in committed if f'"{name}"' not in pages] == []
    assert len(committed) == 6
