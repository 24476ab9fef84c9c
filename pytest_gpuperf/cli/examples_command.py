"""``gpuperf examples``: families of the example suite, each a kernel file with its test, to copy, run and break."""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_gpuperf.errors import GpuperfError

PACKAGE = Path(__file__).resolve().parents[1]
NAMED = re.compile(r"\bkernels/[\w.]+|(?<=#include \")[\w.]+")
"""Files that a test names, or a kernel file includes."""
NEXT = """\
{count} files are in {folder}. Next:

    cd {quoted}
    pytest --update-baselines {test}    # records; without a GPU, the machine code alone
    pytest --gpuperf {test}             # green

then break a kernel in kernels/ on purpose, and run the last line again.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", nargs="?", type=Path, help="where to (default: list what there is)")
    parser.add_argument(
        "families",
        metavar="NAME",
        nargs="*",
        help="as the list names them (default: the one that DIR is called like, else all)",
    )


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Copy families into a folder; without one, list them.

    Returns the exit status, 0.  Raises ``GpuperfError``, before anything is written, and ``OSError``.
    """
    folder: Path | None = parsed.folder
    suite = next(one for one in (PACKAGE / "examples", PACKAGE.parent / "example_suite") if one.is_dir())
    tests = {path.stem.removeprefix("test_"): path for path in sorted(suite.glob("test_*.py"))}
    if folder is None:
        for name, path in tests.items():
            docstring = path.read_text(encoding="utf-8").partition("\n")[0].strip('"')
            write(f"{name:<26}  {docstring}\n")
        return 0
    named = parsed.families or [name for name in tests if name == folder.name]
    if unknown := [name for name in named if name not in tests]:
        close = "".join(f", the closest is {one}" for one in difflib.get_close_matches(unknown[0], tests, 1))
        raise GpuperfError(f"no example is called {unknown[0]}{close}. Nothing was written. To do: gpuperf examples")
    files = {file for name in named or tests for file in _with_kernels(tests[name])}
    targets = {folder / file.relative_to(suite): file for file in sorted(files)}
    if there := [str(target) for target in targets if target.exists()]:
        raise GpuperfError(f"{there[0]} exists. Nothing was written. To do: name another folder, or move it away")
    for target, file in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    test = tests[(named or ["transpose32"])[0]].name
    write(NEXT.format(count=len(targets), folder=folder, quoted=shlex.quote(str(folder)), test=test))
    return 0


def _with_kernels(file: Path) -> Iterator[Path]:
    """A file, and those that it names."""
    yield file
    for name in NAMED.findall(file.read_text(encoding="utf-8")):
        if (file.parent / name).is_file():
            yield from _with_kernels(file.parent / name)
