"""``gpuperf examples``: the example suite, kernels with their tests, to read, to run and to break."""

from __future__ import annotations

import argparse
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

from pytest_gpuperf.errors import GpuperfError

PACKAGE = Path(__file__).resolve().parents[1]
NEXT = """\
The examples are in {folder}. Next:

    cd {quoted}
    pytest --update-baselines test_transpose32.py    # records; without a GPU, the machine code alone
    pytest --gpuperf test_transpose32.py             # green

then break a kernel in kernels/ on purpose, and run the last line again. Every other test is like that.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", nargs="?", type=Path, help="where to (default: list what there is)")


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Copy the suite into a folder that is not there yet or empty; without one, list its families.

    Returns the exit status, 0.  Raises ``GpuperfError`` and ``OSError``.
    """
    folder: Path | None = parsed.folder
    suite = next((one for one in (PACKAGE / "examples", PACKAGE.parent / "example_suite") if one.is_dir()), None)
    if suite is None:
        raise GpuperfError(f"{PACKAGE / 'examples'} is missing: install pytest-gpuperf again")
    if folder is None:
        for path in sorted(suite.glob("test_*.py")):
            docstring = path.read_text(encoding="utf-8").partition("\n")[0].strip('"')
            write(f"{path.stem.removeprefix('test_'):<26}  {docstring}\n")
        return 0
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise GpuperfError(f"{folder} exists and is not empty. Nothing was written. To do: name a new folder")
    shutil.copytree(suite, folder, ignore=shutil.ignore_patterns("__pycache__", ".*"), dirs_exist_ok=True)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n", encoding="utf-8")
    write(NEXT.format(folder=folder, quoted=shlex.quote(str(folder))))
    return 0
