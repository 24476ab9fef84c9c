"""The documentation as a site: what is wrong with a page fails its build, and its pages ask no other host."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = """\
# A page

[The kernel](../example_suite/kernel.cu), [its page](../example_suite/README.md#kernels), [above](#a-page).
"""
SETTINGS = "mkdocs.yml"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A repository of two pages under this one's settings."""
    settings = (ROOT / SETTINGS).read_text(encoding="utf-8").partition("\nnav:")[0]
    (tmp_path / SETTINGS).write_text(f"{settings}\nnav: [README.md, page.md]\n", encoding="utf-8")
    for name in ("docs/site-assets", "docs/generator"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    write(tmp_path, "docs/README.md", "# Start\n\n[A page](page.md#a-page)\n")
    write(tmp_path, "docs/page.md", PAGE)
    write(tmp_path, "example_suite/kernel.cu", "__global__ void kernel() { int tilde = ~~~0; }\n")
    write(tmp_path, "example_suite/README.md", "# Kernels\n\n[Back](../docs/page.md), [one](kernel.cu)\n")
    return tmp_path


def write(site: Path, name: str, text: str) -> None:
    (site / name).parent.mkdir(exist_ok=True)
    (site / name).write_text(text, encoding="utf-8")


def build(site: Path) -> subprocess.CompletedProcess[str]:
    """Build a site by the very command of ``make docs``."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    ((variable, arguments),) = re.findall(r"^\t(\w+=1) \$\(BIN\)/mkdocs (.+)$", makefile, re.MULTILINE)
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *arguments.split()],
        cwd=site, capture_output=True, text=True, check=False, env={**os.environ, variable.partition("=")[0]: "1"},
    )  # fmt: skip


@pytest.mark.skipif(importlib.util.find_spec("material") is None, reason="needs the dependency group site: make docs")
def test_links_lead_to_pages_that_show_the_files_no_host_is_asked_and_a_lost_anchor_fails(site: Path) -> None:
    done = build(site)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    page = (site / "site" / "page.html").read_text(encoding="utf-8")
    assert 'href="repository/example_suite/kernel.cu.html"' in page
    assert 'href="repository/example_suite/README.html#kernels"' in page or "README.md.html#kernels" in page
    kernel = (site / "site" / "repository" / "example_suite" / "kernel.cu.html").read_text(encoding="utf-8")
    assert "tilde" in kernel
    (moved,) = (site / "site" / "repository" / "example_suite").glob("README*.html")
    assert 'href="../../page.html"' in moved.read_text(encoding="utf-8")
    pages = [path.read_text(encoding="utf-8") for path in (site / "site").rglob("*.html")]
    tags = [tag for page in pages for tag in re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page)]
    assert any("iframe-worker.js" in tag for tag in tags)
    assert [tag for tag in tags if re.search(r"(?:src|href)=\"?(?:https?:)?//", tag)] == []
    write(site, "docs/page.md", "# A page\n\n[x](README.md#gone)\n")
    done = build(site)
    assert done.returncode != 0
    assert "does not contain an anchor '#gone'" in re.sub(r"\s+", " ", done.stdout + done.stderr)
