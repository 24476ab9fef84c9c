"""What a team edits in its baselines by hand: records that follow a renaming, and records that go."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError, quoted
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.baselines.writing import Say, silent
from pytest_gpuperf.model.evidence import Key

_WORKLOAD = re.compile(r"(?P<module>[^:]+)::(?P<test>.+?) \[(?P<workload>.+)\]")


class Edited(NamedTuple):
    """One record that got another name, or went."""

    target: str
    old: Key
    new: Key | None = None

    def __str__(self) -> str:
        return f"{self.target}: {self.old}{'' if self.new is None else f' -> {self.new}'}"


def renamed(key: Key, old: str, new: str) -> Key | None:
    """Where a record goes when ``old`` becomes ``new``; None if it stays.

    Names are those of a test file, of a test or class in it, with parameters or without, or, as ``str(key)``, of a
    workload.
    """
    if old == key.module:
        return msgspec.structs.replace(key, module=new)
    if old == str(key):
        found = _WORKLOAD.fullmatch(new)
        return Key(**found.groupdict()) if found else None
    rest = key.node_id.removeprefix(old)
    if "::" not in old or rest == key.node_id or (rest and not rest.startswith(("[", "::"))):
        return None
    module, _, test = (new + rest).partition("::")
    return Key(module=module, test=test, workload=key.workload)


def move(store: BaselineStore, old: str, new: str, *, force: bool = False, say: Say = silent) -> list[Edited]:
    """Give the records of ``old`` the name ``new`` for every target, and return what was moved.

    Raises ``BaselineError`` where there is nothing to move, or a record has the new name already and it is not to be
    overwritten by ``force``; then nothing was written.
    """
    if ("::" in old) != ("::" in new) or bool(_WORKLOAD.fullmatch(old)) != bool(_WORKLOAD.fullmatch(new)):
        raise BaselineError(
            f"{quoted(old)} and {quoted(new)} are not of one kind: name two test files, two tests, or two workloads, "
            "each as 'NODEID [workload]'"
        )
    with store.exclusive(say):
        module, other = old.partition("::")[0], new.partition("::")[0]
        moved: list[Edited] = []
        plan: list[tuple[Path, bytes]] = []
        for target in store.targets() if old != new else ():
            records = dict(store.load(target, module))
            goes = {place: key for place in records if (key := renamed(place[0], old, new)) is not None}
            if not goes:
                continue
            moved += [Edited(target, place[0], key) for place, key in goes.items()]
            came = {(key, place[1]): records.pop(place) for place, key in goes.items()}
            there = records if other == module else store.load(target, other)
            if not force and (taken := next(iter(came.keys() & there.keys()), None)) is not None:
                raise BaselineError(
                    f"{target}: {taken[0]} has a record of its own. Nothing was moved: --force overwrites it"
                )
            plan.append(store.rewritten(target, other, {**there, **came}))
            if other != module:
                plan.append(store.rewritten(target, module, records))
        if not moved:
            raise _nothing(store, old)
        store.replace_files(plan, sweep=False)
    return list(dict.fromkeys(moved))


def remove(store: BaselineStore, name: str, *, say: Say = silent) -> list[Edited]:
    """Remove all records of a target, a compiler, a test file, a test or a workload.

    The machine code of these alone goes with them, and a target or a compiler from the manifest too.  Returns the
    records; raises ``BaselineError`` where there are none and the manifest does not have the name.
    """
    with store.exclusive(say):
        removed: list[Edited] = []
        plan: list[tuple[Path, bytes]] = []
        for target, module in store.places():
            records = store.load(target, module)
            gone = [
                (key, toolchain) for key, toolchain in records
                if name in (target, toolchain) or renamed(key, name, name) is not None
            ]  # fmt: skip
            if gone:
                removed += [Edited(target, key) for key, _ in gone]
                kept = {place: records[place] for place in records.keys() - gone}
                plan.append(store.rewritten(target, module, kept))
        listed = manifest.without(store.root, name)
        if not removed and not listed:
            raise _nothing(store, name)
        store.replace_files([*plan, *listed], sweep=True)
    return list(dict.fromkeys(removed))


def _nothing(store: BaselineStore, name: str) -> BaselineError:
    return BaselineError(
        f"{quoted(name)}: there is no such record in {store.root}. Name a test file, a node id, or a node id and "
        "' [workload]', as gpuperf baselines list shows them"
    )
