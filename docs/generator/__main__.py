"""Writes docs/reference from docstrings, tables and parsers of the package.

python docs/generator            # write the pages
python docs/generator --check    # say which differ, and write nothing: exit status 1 if any does
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "reference"
PAGES = {
    "api.md": "api_page", "options.md": "option_page", "verdicts.md": "verdict_page", "commands.md": "command_page",
    "metrics.md": "metric_page", "report.schema.json": "schema_page",
}  # fmt: skip
"""By file: the module whose ``page()`` makes it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(prog="python docs/generator")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a page is out of date")
    check = parser.parse_args(arguments).check
    stale = []
    for name, module in PAGES.items():
        path, text = FOLDER / name, importlib.import_module(module).page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                path.write_text(text, encoding="utf-8")
    if stale:
        sys.stdout.write(f"{'out of date' if check else 'written'}: {', '.join(stale)}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))  # the package of this checkout, not an installed one
    sys.exit(main())
