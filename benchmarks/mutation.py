"""How much of a room do its tests hold in place?  The mutation score of its modules, and the mutants that survive.

    python -m pip install mutmut==3.8.1
    python benchmarks/mutation.py judge [--tests PATH...]

mutmut changes one expression of a function at a time and runs the tests that reach that function.  A mutant is killed
when one of them fails or runs out of time; the score is the killed part of all mutants.  Code outside functions or
under a decorator is not mutated.  All work is done in ``.mutation/ROOM``; a second call tries new, changed and
surviving mutants.  To see a mutant: ``cd .mutation/judge && mutmut show NAME``.  Exit status 1 if the score is below
the room's bound.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "pytest_gpuperf"
KILLED = ["--ignore=tests/unit/baselines/test_writing.py"]
"""Starts processes and kills them, for seconds: what survives would wait for them."""
ROOMS = {
    "judge": (["tests/unit/judge"], 0.95, ("*",)),
    "timing": (["tests/unit/timing"], 0.85, ("*",)),
    "baselines": (["tests/unit/baselines", *KILLED], 0.92, ("*",)),
    "session": (["tests/unit/session"], 0.92, ("exit_policy.py", "missing.py")),
}
"""Tests that are to hold a room in place, the least score, and the room's modules that decide."""
QUICK = {"CI": "true", "GPUPERF_TESTS_COLD": "1"}
"""One Hypothesis seed, and no server of warm processes: each mutant is a session of pytest, and would start one."""
RUN_MUTMUT = "from mutmut.__main__ import cli; cli()"
NOTES = {0: "", 33: " (no test calls it)"}
"""By exit code in mutmut's results; 0: all tests passed."""
TIMED_OUT = (24, 36, 152, 255, -24)
"""The tests that reach it ran for fifteen times as long as with the unchanged code, and 15 s more: it does not end."""
DETECTED = (1, 3, *TIMED_OUT)
"""A test failed, or ran out of time."""


def prepare(folder: Path, room: str, tests: Sequence[str]) -> None:
    """A folder that looks like the repository to mutmut, which reads its settings from the current one."""
    (folder / "mutants").mkdir(parents=True, exist_ok=True)  # it is on Python's path before mutmut fills it
    entries = [path for path in ROOT.iterdir() if not path.name.startswith(".")]
    for path in entries:
        link = folder / path.name
        if not link.is_symlink():
            link.symlink_to(path)
    others = [path.name for path in entries if path.name not in (PACKAGE, "tests")]
    settings = {
        "source_paths": [PACKAGE], "also_copy": others,
        "only_mutate": [f"{PACKAGE}/{room}/{module}" for module in ROOMS[room][2]],
        "pytest_add_cli_args": ["-p", "no:cacheprovider"], "pytest_add_cli_args_test_selection": list(tests),
    }  # fmt: skip
    lines = [f"{name}=\n" + "".join(f"    {value}\n" for value in values) for name, values in settings.items()]
    (folder / "setup.cfg").write_text("[mutmut]\n" + "".join(lines), encoding="utf-8")


def forget_survivors(folder: Path) -> None:
    """Tests may have been added since: what survived is tried again, with the tests that reach it now."""
    for file in results_files(folder):
        found = json.loads(file.read_text(encoding="utf-8"))
        codes = found["exit_code_by_key"]
        found["exit_code_by_key"] = {name: code if code in DETECTED else None for name, code in codes.items()}
        file.write_text(json.dumps(found), encoding="utf-8")
    (folder / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)
    shutil.rmtree(folder / "mutants" / "tests", ignore_errors=True)  # mutmut copies and deletes nothing


def results_files(folder: Path) -> Iterable[Path]:
    return sorted((folder / "mutants" / PACKAGE).rglob("*.py.meta"))


def report(folder: Path, room: str, least: float) -> int:
    """Print the score per module and the survivors' names; the exit status."""
    rows, survivors, late = [], [], 0
    for file in results_files(folder):
        codes = json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"]
        if not file.is_relative_to(folder / "mutants" / PACKAGE / room) or not codes:
            continue
        rows.append((file.name.removesuffix(".py.meta"), sum(code in DETECTED for code in codes.values()), len(codes)))
        late += sum(code in TIMED_OUT for code in codes.values())
        survivors += [(name, code) for name, code in codes.items() if code not in DETECTED]
    killed, mutants = sum(row[1] for row in rows), sum(row[2] for row in rows)
    print("\n| module | killed | mutants | score |\n|---|---|---|---|")
    for name, part, whole in [*rows, ("all", killed, mutants)]:
        print(f"| {name} | {part} | {whole} | {part / max(whole, 1):.1%} |")
    print(f"\n{late} of the killed ran out of time.")
    print("", *(f"{name}{NOTES.get(code, f' (exit code {code})')}" for name, code in survivors), sep="\n")
    return 0 if mutants and killed >= least * mutants else 1


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room", choices=ROOMS)
    parser.add_argument("--tests", nargs="+", help="pytest's selection instead of the room's")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args(arguments)
    tests, least, _ = ROOMS[options.room]
    folder = ROOT / ".mutation" / options.room
    prepare(folder, options.room, options.tests or tests)
    forget_survivors(folder)
    path = os.pathsep.join(filter(None, [str(folder / "mutants"), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-c", RUN_MUTMUT, "run", "--max-children", str(options.processes)]
    status = subprocess.call(command, cwd=folder, env={**os.environ, **QUICK, "PYTHONPATH": path})
    return status or report(folder, options.room, least)


if __name__ == "__main__":
    sys.exit(main())
