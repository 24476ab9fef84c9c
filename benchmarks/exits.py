"""What a gated run says, and how it ends, when a part of the suite or of its baselines is gone.

    python benchmarks/exits.py [--output docs/results/exits.md]

Copies two modules of the example suite with their baselines, takes one thing away at a time, and runs
``CI=true pytest --gpuperf`` on what is left.  Exit status 1 if an untouched copy is not green, or any other is.
Without a GPU a test that returns before its workloads is green, too: its kernels were compared before.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SUITE = "example_suite"
MODULES = ("test_reduce_sum", "test_loop_counter_signedness")
CHANGED = f"{SUITE}/test_reduce_sum.py"
TEST = "test_sum_of_an_array"
MOST_WORDS = 160
"""Characters of a line that the table quotes."""


class Ended(NamedTuple):
    """How a run ended."""

    case: str
    status: int
    line: str
    """The one that says what is wrong."""


def untouched(_root: Path) -> None:
    """The suite as it is."""


def deleted_test(root: Path) -> None:
    """A test that has baselines is deleted."""
    text = (root / CHANGED).read_text(encoding="utf-8")
    (root / CHANGED).write_text(text[: text.index(f"def {TEST}(")], encoding="utf-8")


def deleted_file(root: Path) -> None:
    """A test file is deleted."""
    (root / CHANGED).unlink()


def skipped_test(root: Path) -> None:
    """A test is marked as skipped."""
    _edit(root, f"def {TEST}(", f"@pytest.mark.skip(reason='flaky')\ndef {TEST}(")


def early_return(root: Path) -> None:
    """A test returns before its workloads."""
    _edit(root, "    n = 2**28\n", "    return\n    n = 2**28\n")


def renamed_test(root: Path) -> None:
    """A test has another name."""
    _edit(root, f"def {TEST}(", f"def {TEST}_of_floats(")


def removed_architecture(root: Path) -> None:
    """The folder of an architecture is removed."""
    shutil.rmtree(root / "baselines" / "sm_80")


def another_compiler(root: Path) -> None:
    """The baselines were compiled by another NVRTC."""
    for path in (root / "baselines").rglob("*.jsonl"):
        path.write_text(path.read_text(encoding="utf-8").replace("nvrtc 13.", "nvrtc 12."), encoding="utf-8")


CASES: tuple[Callable[[Path], None], ...] = (
    untouched, deleted_test, deleted_file, skipped_test, early_return, renamed_test, removed_architecture,
    another_compiler,
)  # fmt: skip


def copy_suite(root: Path) -> None:
    """Two modules, what they import, and their baselines."""
    shutil.copytree(ROOT / SUITE, root / SUITE, ignore=shutil.ignore_patterns("__pycache__", "test_*.py"))
    for module in MODULES:
        shutil.copy(ROOT / SUITE / f"{module}.py", root / SUITE)
    shutil.copytree(ROOT / "baselines", root / "baselines")
    for record in (root / "baselines").glob(f"*/{SUITE}/*.jsonl"):
        if record.stem not in MODULES:
            record.unlink()
    manifest = root / "baselines" / "manifest.json"
    names = json.loads(manifest.read_text(encoding="utf-8"))
    for kind in ("architectures", "gpu_models"):
        names[kind] = [name for name in names[kind] if any((manifest.parent / name).glob(f"{SUITE}/*.jsonl"))]
    manifest.write_text(json.dumps(names), encoding="utf-8")
    (root / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")


def ended(case: Callable[[Path], None], folder: Path) -> Ended:
    """Run the suite with one thing taken away."""
    root = folder / case.__name__
    root.mkdir()
    copy_suite(root)
    case(root)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--gpuperf", SUITE], cwd=root, check=False,
        capture_output=True, text=True, env={**os.environ, "CI": "true"},
    )  # fmt: skip
    return Ended(
        case.__doc__ or "",
        run.returncode,
        "" if case is untouched else telling_line(run.stdout.replace(str(root), ".")),
    )


def telling_line(output: str) -> str:
    """The first line of a run's summary that says what is wrong."""
    lines = [line.strip() for line in output.splitlines()]
    telling = (
        r"ERROR: .*|.*(NOT-MEASURED|was not reached|has a baseline|gpuperf mv|--update-baselines=all|compiled by).*"
    )
    found = [line for line in lines if re.fullmatch(telling, line)]
    return found[0] if found else (lines[-1] if lines else "")


def table(found: list[Ended]) -> str:
    """The page."""
    rows = [f"| {one.case} | {one.status} | {one.line[:MOST_WORDS].replace('|', '/')} |" for one in found]
    how = f"`CI=true pytest --gpuperf {SUITE}` on {len(MODULES)} modules, by `python benchmarks/exits.py`."
    columns = ["| what was done | exit status | what the run says |", "|---|---|---|"]
    head = ["# What is taken away is missed", "", how, "", *columns]
    return "\n".join([*head, *rows, ""])


def _edit(root: Path, old: str, new: str) -> None:
    text = (root / CHANGED).read_text(encoding="utf-8")
    if old not in text:
        raise SystemExit(f"{CHANGED} has no {old!r} any more: follow it here")
    (root / CHANGED).write_text(text.replace(old, new, 1), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuperf-exits-") as name:
        found = [ended(case, Path(name)) for case in CASES]
    page = table(found)
    print(page)
    if given.output:
        given.output.write_text(page, encoding="utf-8")
    return int(found[0].status != 0 or any(one.status == 0 for one in found[1:]))


if __name__ == "__main__":
    sys.exit(main())
