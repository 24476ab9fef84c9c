"""``gpuperf baselines``: lists what is on record, lets records follow a renaming, and removes some."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from pathlib import Path

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.edits import move, remove, renamed
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.baselines.writing import Say
from pytest_gpuperf.cli.baseline_folder import add_folder, folder_of
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.model.evidence import Key

Write = Callable[[str], object]
_NAMES = {"list": (0, 1), "mv": (2, 2), "rm": (1, 1)}
"""How many names an action takes, at least and at most."""
_USAGE = {"list": "one NAME or none", "mv": "OLD NEW", "rm": "one NAME"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=tuple(_NAMES), default="list", help="default: list")
    parser.add_argument(
        "names", nargs="*", metavar="NAME",
        help="a test file, a node id, or 'NODEID [workload]', as on record: list NAME, mv OLD NEW, rm NAME; to list or "
        "remove as a whole also a target (sm_80, nvidia-h200) or a compiler ('nvrtc 13.0.88')",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="mv: overwrite records that have the new name already")
    add_folder(parser)


def execute(parsed: argparse.Namespace, write: Write) -> int:
    """Returns the exit status: 0; 1 where a target that is listed has no records.  Raises ``GpuperfError``."""
    least, most = _NAMES[parsed.action]
    if not least <= len(parsed.names) <= most:
        raise BaselineError(f"{parsed.action} takes {_USAGE[parsed.action]}: see gpuperf baselines --help")
    store = BaselineStore(folder_of(parsed.baselines, Path.cwd()))

    def say(line: object) -> object:
        return write(f"{line}\n")

    if parsed.action == "list":
        return _list_records(store, parsed.names[0], say) if parsed.names else _list_targets(store, say)
    if parsed.action == "mv":
        edits, done = move(store, *parsed.names, force=parsed.force, say=say), "moved"
    else:
        edits, done = remove(store, *parsed.names, say=say), "removed"
    for edit in edits:
        say(f"{done}  {edit}")
    say(f"Commit {shlex.quote(str(store.root))}.")
    return 0


def _list_targets(store: BaselineStore, say: Say) -> int:
    found = manifest.read(store.root)
    if found is None:
        say(f"{store.root} has no {manifest.FILE} yet: the first pytest --update-baselines writes it")
        return 0
    counts = {target: len(store.keys(target)) for target in found.targets}
    compilers = dict.fromkeys((*found.toolchains, *store.recorded_toolchains()))
    counts |= {name: len({key for arch in store.archs() for key in store.keys(arch, name)}) for name in compilers}
    width = max(map(len, counts), default=0)
    for name, count in counts.items():
        remark = "" if name in (*found.targets, *found.toolchains) else "  not in the manifest"
        say(f"{name:<{width}}  {numbered(count, 'workload')}{remark}{'' if count else '  it has no records'}")
    return 1 if any(not counts[target] for target in found.targets) else 0


def _list_records(store: BaselineStore, name: str, say: Say) -> int:
    found: dict[Key, list[str]] = {}
    for target in store.targets():
        of_compiler = store.keys(target, name)
        for key in store.keys(target):
            if name == target or key in of_compiler or renamed(key, name, name) is not None:
                found.setdefault(key, []).append(target)
    for key, targets in sorted(found.items()):
        say(f"{key}: {', '.join(targets)}")
    return 0
