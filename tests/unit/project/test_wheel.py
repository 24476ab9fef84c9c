"""What comes with the package: it stays small, and its examples need nothing that is left out."""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import zipfile

from documented_commands import METADATA, ROOT

WHEEL = METADATA["tool"]["hatch"]["build"]["targets"]["wheel"]
LEFT_OUT = [one.lstrip("/") for one in WHEEL["exclude"]]
IMPORT = re.compile(r"^[ \t]*(?:from|import) (\w+)", re.MULTILINE)
MOST_BYTES = 1_475_000
"""Of 1.5 MB, the licence and the metadata being 15 KB more."""


def contents() -> list[str]:
    """Tracked files of the wheel, as the repository calls them."""
    listed = subprocess.run(["git", "ls-files", *WHEEL["only-include"]], cwd=ROOT, capture_output=True, text=True)
    return [
        name for name in listed.stdout.splitlines() if not any((name + "/").startswith(f"{one}/") for one in LEFT_OUT)
    ]


def test_the_wheel_stays_below_its_limit() -> None:
    packed, record = io.BytesIO(), []
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in contents():
            source, _, rest = name.partition("/")
            place = f"{WHEEL['sources'].get(source, source)}/{rest}"
            content = (ROOT / name).read_bytes()
            wheel.writestr(place, content)
            record.append(f"{place},sha256={hashlib.sha256(content).hexdigest()[:43]},{len(content)}\n")
        wheel.writestr("RECORD", "".join(record))
    assert len(record) > 500
    assert len(packed.getvalue()) < MOST_BYTES


def test_all_that_is_left_out_is_there() -> None:
    assert [one for one in LEFT_OUT if not (ROOT / one).exists()] == []


def test_no_example_imports_what_is_left_out() -> None:
    modules = {name for name in contents() if name.startswith("example_suite/") and name.endswith(".py")}
    imported = {one for name in modules for one in IMPORT.findall((ROOT / name).read_text(encoding="utf-8"))}
    assert len(modules) > 50
    assert {f"example_suite/{one}.py" for one in imported}.isdisjoint(LEFT_OUT)
