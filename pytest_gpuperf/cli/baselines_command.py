"""``gpuperf baselines``: lists records, renames or removes them, or pins them where they are not committed."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.baselines import manifest, pin
from pytest_gpuperf.baselines.baseline_errors import BaselineError, quoted
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.baseline_folder import add_folder, folder_of
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.process import last_run

USAGE = {
    "list": (0, 1, "one NAME or none"), "mv": (2, 2, "OLD NEW"), "rm": (1, 1, "one NAME"), "pin": (0, 0, "no NAME"),
}  # fmt: skip
"""How many names an action takes, at least and at most."""
_WORKLOAD = re.compile(r"(?P<module>[^:]+)::(?P<test>.+?) \[(?P<workload>.+)\]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=tuple(USAGE), default="list", help="default: list")
    parser.add_argument(
        "names", nargs="*", metavar="NAME",
        help="a folder, a test file, a node id, or 'NODEID [workload]', as recorded: list NAME, mv OLD NEW, rm NAME; "
        "to list or remove as a whole also a target (sm_80, nvidia-h200) or a compiler ('nvrtc 13.0.88'); pin writes "
        f"{pin.FILE} at pytest's root, by the last run there; without one into the current folder",
    )  # fmt: skip
    add_folder(parser)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Returns the exit status, 0.  Raises ``GpuperfError``."""
    least, most, usage = USAGE[parsed.action]
    names = [name.rstrip("/") for name in parsed.names]  # as a shell completes folders
    if not least <= len(names) <= most:
        raise BaselineError(f"{parsed.action} takes {usage}: see gpuperf baselines --help")
    store = BaselineStore(folder_of(parsed.baselines, Path.cwd()))
    if parsed.action == "list":
        _list_records(store, *names, write=write)
        return 0
    if parsed.action == "pin":
        content = pin.lines_of(store)
        ran = last_run.find(Path.cwd())
        file = pin.FILE if ran is None else os.path.relpath(ran.parents[1] / pin.FILE)
        write_whole(Path(file), content)
        write(f"pinned  {numbered(len(pin.pinned(content)), 'file')} of {store.root}\nCommit {file}.\n")
        return 0
    for line in edit(store, *names):
        write(f"{'moved' if parsed.action == 'mv' else 'removed'}  {line}\n")
    write(f"Commit {shlex.quote(str(store.root))}.\n")
    return 0


def _list_records(store: BaselineStore, name: str = "", *, write: Callable[[str], object]) -> None:
    """Workloads that have records of this name, with their targets and compilers; without one, the number by these."""
    counts = Counter[str]()
    for key, records in sorted(store.workloads().items()):
        places = [*records.static, *((target, "") for target in records.times)]
        labels = [" ".join(place).rstrip() for place in places]
        counts.update(labels)
        if name and (key.is_of(name) or any(name in place for place in places)):
            write(f"{key}: {', '.join(labels)}\n")
    lines = [f"{word}: {numbered(count, 'workload')}" for word, count in sorted(counts.items())]
    none = f"{store.root} has no records yet: pytest --update-baselines writes them"
    if not name:
        write("\n".join(lines or [none]) + "\n")


def edit(store: BaselineStore, old: str, new: str | None = None) -> list[str]:
    """Give the records of ``old`` the name ``new`` for every target, or remove them where that is None.

    What is removed may also be a target or a compiler, which goes from the manifest too; machine code that no record
    names any more goes along.  Returns a line for each record.  Raises ``BaselineError`` where there is nothing to
    edit, or a record has the new name already; then nothing was written.
    """
    if new is not None and _kind(old) != _kind(new):
        raise BaselineError(
            f"{quoted(old)} and {quoted(new)} are of different kinds: name two test files, two tests or two workloads, "
            "each as 'NODEID [workload]'"
        )
    with store.exclusive():
        files = {place: dict(store.load(*place)) for place in store.places()}
        found = [
            (target, *place, None if new is None else _renamed(place[0], old, new))
            for (target, _), records in files.items() for place in records
            if place[0].is_of(old) or (new is None and old in (target, place[1]))
        ]  # fmt: skip
        for target, key, toolchain, goes in found if old != new else ():
            record = files[target, key.module].pop((key, toolchain))
            if goes is not None:
                there = files.setdefault((target, goes.module), {})
                if (goes, toolchain) in there:
                    raise BaselineError(
                        f"{target}: {goes} has a record already. Nothing was moved. To do: remove that record first"
                    )
                there[goes, toolchain] = record
        plan = [store.rewritten(*place, those) for place, those in files.items() if those != store.load(*place)]
        listed = store.manifest()
        if new is None and listed is not None and old in (*listed.targets, *listed.toolchains):
            targets, toolchains = ({*names} - {old} for names in (listed.targets, listed.toolchains))
            rest = manifest.manifest_of(targets, toolchains, listed.named_by_kernels, listed.roofs)
            plan.append((store.root / manifest.FILE, rest.encoded()))
        if not plan:
            raise BaselineError(
                f"{quoted(old)}: there is no such record in {store.root}. Name a test file, a node id, or a node id "
                "and ' [workload]', as gpuperf baselines list shows them"
            )
        store.replace_files(plan, sweep=new is None)
    return list(dict.fromkeys(f"{one[0]}: {one[1]}{f' -> {one[3]}' if one[3] else ''}" for one in found))


def _renamed(key: Key, old: str, new: str) -> Key:
    """Where a record that is of ``old`` goes when that becomes ``new``."""
    if found := _WORKLOAD.fullmatch(new):
        kernel = str(key)[len(old) - 1 : -1]  # of a callable
        return msgspec.structs.replace(Key(**found.groupdict()), workload=found["workload"] + kernel)
    module, _, test = (new + key.node_id.removeprefix(old)).partition("::")
    return Key(module=module, test=test, workload=key.workload)


def _kind(name: str) -> tuple[bool, bool]:
    return "::" in name, _WORKLOAD.fullmatch(name) is not None
