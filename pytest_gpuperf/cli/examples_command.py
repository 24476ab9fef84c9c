"""``gpuperf examples``: kernels of the example suite with their tests, to read, to run and to break."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_gpuperf.errors import GpuperfError

PACKAGE = Path(__file__).resolve().parents[1]
USUAL = ("transpose32", "bank_conflicts", "reduce_sum", "sample4_local_memory", "vector_loads_float4")
"""Families that are copied if none is named, as far as there are such."""
IMPORT = re.compile(r"^[ \t]*(?:from|import) (\w+)", re.MULTILINE)
NEXT = """\
{count} files in {folder}. Next:

    cd {quoted}
    pytest --gpuperf --update-baselines     # records; without a GPU, the machine code alone
    pytest --gpuperf                        # green

then break a kernel in kernels/ on purpose, and run the last line again.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", nargs="?", type=Path, help="where to (default: list the families)")
    parser.add_argument("families", metavar="FAMILY", nargs="*", help="default: a few that teach most")


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Copy families into a folder that is not there yet or empty; without one, list them.

    Returns the exit status, 0.  Raises ``GpuperfError`` and ``OSError``; then nothing was written.
    """
    folder: Path | None = parsed.folder
    suite = _suite()
    there = {path.stem.removeprefix("test_"): path for path in sorted(suite.glob("test_*.py"))}
    if folder is None:
        for name, path in there.items():
            docstring = path.read_text(encoding="utf-8").partition("\n")[0].strip('"')
            write(f"{name:<26}  {docstring}\n")
        return 0
    if unknown := [name for name in parsed.families if name not in there]:
        raise GpuperfError(f"there is no family {', '.join(unknown)}: gpuperf examples lists them")
    if not parsed.families and str(folder) in there:
        raise GpuperfError(f"{folder} is a family, and the folder comes first: gpuperf examples DIR {folder}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise GpuperfError(f"{folder} is there and not empty: name a new folder, nothing is overwritten")
    chosen = parsed.families or [name for name in USUAL if name in there]
    files = _files(suite, [there[name] for name in chosen])
    for path in files:
        target = folder / path.relative_to(suite)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n", encoding="utf-8")
    write(NEXT.format(count=len(files) + 1, folder=folder, quoted=shlex.quote(str(folder))))
    return 0


def _suite() -> Path:
    """The examples of the installed package; in a checkout, those of the repository."""
    for folder in (PACKAGE / "examples", PACKAGE.parent / "example_suite"):
        if folder.is_dir():
            return folder
    raise GpuperfError(f"{PACKAGE / 'examples'} is missing: install pytest-gpuperf again")


def _files(suite: Path, tests: Sequence[Path]) -> list[Path]:
    """The tests, what they import, every kernel (some include each other), and what documents claim of them."""
    data = (path for pattern in ("*.json", "claim_data/*.json", "kernels/*.cu*") for path in suite.glob(pattern))
    return [*_imported(suite, [suite / "conftest.py", *tests]), *data]


def _imported(suite: Path, modules: Sequence[Path]) -> list[Path]:
    """The modules, and those of the suite that they import, wherever in them and at however many removes."""
    found: dict[Path, None] = {}
    pending = list(modules)
    while pending:
        path = pending.pop()
        if path not in found and path.is_file():
            found[path] = None
            pending += [suite / f"{name}.py" for name in IMPORT.findall(path.read_text(encoding="utf-8"))]
    return list(found)
