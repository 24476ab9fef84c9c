"""``gpuperf baselines``: lists what is on record, lets records follow a renaming, and removes some."""

from __future__ import annotations

import argparse
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.edits import edit
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.baseline_folder import add_folder, folder_of
from pytest_gpuperf.formatting import numbered

USAGE = {"list": (0, 1, "one NAME or none"), "mv": (2, 2, "OLD NEW"), "rm": (1, 1, "one NAME")}
"""How many names an action takes, at least and at most."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=tuple(USAGE), default="list", help="default: list")
    parser.add_argument(
        "names", nargs="*", metavar="NAME",
        help="a folder, a test file, a node id, or 'NODEID [workload]', as on record: list NAME, mv OLD NEW, rm NAME; "
        "to list or remove as a whole also a target (sm_80, nvidia-h200) or a compiler ('nvrtc 13.0.88')",
    )  # fmt: skip
    add_folder(parser)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Returns the exit status, 0.  Raises ``GpuperfError``."""
    least, most, usage = USAGE[parsed.action]
    if not least <= len(parsed.names) <= most:
        raise BaselineError(f"{parsed.action} takes {usage}: see gpuperf baselines --help")
    store = BaselineStore(folder_of(parsed.baselines, Path.cwd()))
    if parsed.action == "list":
        _list_records(store, *parsed.names, write=write)
        return 0
    for line in edit(store, *parsed.names):
        write(f"{'moved' if parsed.action == 'mv' else 'removed'}  {line}\n")
    write(f"Commit {shlex.quote(str(store.root))}.\n")
    return 0


def _list_records(store: BaselineStore, name: str = "", *, write: Callable[[str], object]) -> None:
    """Workloads that have records of this name, with their targets and compilers; without one, the number by these."""
    counts = Counter[str]()
    for key, records in sorted(store.workloads().items()):
        places = [*records.static, *((target, "") for target in records.times)]
        words = [" ".join(place).rstrip() for place in places]
        counts.update(words)
        if name and (key.is_of(name) or any(name in place for place in places)):
            write(f"{key}: {', '.join(words)}\n")
    lines = [f"{word}: {numbered(count, 'workload')}" for word, count in sorted(counts.items())]
    none = f"{store.root} has no records yet: pytest --update-baselines writes them"
    if not name:
        write("\n".join(lines or [none]) + "\n")
