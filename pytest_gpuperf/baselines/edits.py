"""What a team edits in its baselines by hand: records that follow a renaming, and records that go."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, NamedTuple

from pytest_gpuperf.baselines import layout, manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError, quoted
from pytest_gpuperf.baselines.records import Name, RecordFile
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.baselines.writing import Say, silent
from pytest_gpuperf.model.evidence import Key

_WORKLOAD = re.compile(r"(?P<test>.+) \[(?P<workload>.+)\]")


class RecordName(NamedTuple):
    """A test file, a test or class in it, a workload of a test: as far as it was named."""

    module: str
    test: str = ""
    workload: str = ""

    @classmethod
    def read(cls, store: BaselineStore, text: str) -> RecordName:
        """``test_a.py``, ``test_a.py::test_x`` or, of one workload, ``test_a.py::test_x [name]``.

        A name that ends like a workload's may be that of a test.
        """
        module, _, test = text.partition("::")
        plain, named = cls(module, test), _WORKLOAD.fullmatch(test)
        if named is None or any(plain.leads(key, plain) for key in store.all_keys()):
            return plain
        return cls(module, named["test"], named["workload"])

    def leads(self, key: Key, new: RecordName) -> Key | None:
        """Where a record goes when this place becomes ``new``; None if it stays."""
        if key.module != self.module:
            return None
        if not self.test:
            return Key(module=new.module, test=key.test, workload=key.workload)
        rest = key.test.removeprefix(self.test)
        if not key.test.startswith(self.test) or not (rest == "" or rest.startswith(("[", "::"))):
            return None
        if not self.workload:
            return Key(module=new.module, test=new.test + rest, workload=key.workload)
        if rest or key.workload != self.workload:
            return None
        return Key(module=new.module, test=new.test, workload=new.workload)


class Edited(NamedTuple):
    """One record that got another name, or went."""

    target: str
    old: Key
    new: Key | None = None

    def __str__(self) -> str:
        return f"{self.target}: {self.old}{'' if self.new is None else f' -> {self.new}'}"


def move(store: BaselineStore, old: str, new: str, *, force: bool = False, say: Say = silent) -> list[Edited]:
    """Give the records of ``old`` the name ``new`` for every target, and return what was moved.

    Raises ``BaselineError`` where there is nothing to move, or a record has the new name already and it is not to be
    overwritten by ``force``; then nothing was written.
    """
    with store.exclusive(say):
        first, second = RecordName.read(store, old), RecordName.read(store, new)
        if bool(first.test) != bool(second.test):
            raise BaselineError(
                f"{quoted(old)} and {quoted(new)} are not of one kind: name two test files or two tests"
            )
        if bool(first.workload) != bool(second.workload):
            raise BaselineError(f"{quoted(old)} and {quoted(new)}: name two workloads, each as 'NODEID [workload]'")
        moved: list[Edited] = []
        plan: list[tuple[Path, bytes]] = []
        for target in store.targets() if first != second else ():
            file = store.load(target, first.module)
            to = {name: key for name in file.records if (key := first.leads(name.key(first.module), second))}
            if to:
                moved += [Edited(target, name.key(first.module), key) for name, key in to.items()]
                plan += _moved(store, file, first.module, second.module, to, force=force)
        if not moved:
            raise _nothing(store, old)
        store.replace_files(plan, sweep=False)
    return list(dict.fromkeys(moved))


def _moved(
    store: BaselineStore, file: RecordFile[Any], module: str, other: str, to: dict[Name, Key], *, force: bool
) -> list[tuple[Path, bytes]]:
    """The writes of one target: under the new name first."""
    stays = dataclasses.replace(file, records={name: one for name, one in file.records.items() if name not in to})
    there = stays if other == module else store.load(file.target, other)
    goes = {Name(key.test, key.workload, name.toolchain): file.records[name] for name, key in to.items()}
    taken = next(iter(goes.keys() & there.records.keys()), None)
    if taken is not None and not force:
        raise BaselineError(
            f"{file.target}: {taken.key(other)} has a record of its own. Nothing was moved: --force overwrites it"
        )
    sessions = {**there.sessions, **file.sessions}
    joined = RecordFile(file.target, {**there.records, **goes}, sessions)
    return [store.rewritten(other, joined), *([store.rewritten(module, stays)] if other != module else [])]


def remove(store: BaselineStore, name: str, *, say: Say = silent) -> list[Edited]:
    """Remove all records of a target, a compiler, a test file, a test or a workload.

    The machine code of these alone goes with them, and a target or a compiler from the manifest too.  Returns the
    records; raises ``BaselineError`` where there are none and the manifest does not have the name.
    """
    with store.exclusive(say):
        place = RecordName.read(store, name)
        gone: list[Edited] = []
        plan: list[tuple[Path, bytes]] = []
        for target in store.targets():
            for module in store.modules(target):
                file = store.load(target, module)
                kept = {
                    one: record
                    for one, record in file.records.items()
                    if name not in (target, one.toolchain) and place.leads(one.key(module), place) is None
                }
                if len(kept) < len(file.records):
                    gone += [Edited(target, one.key(module)) for one in file.records if one not in kept]
                    plan.append(store.rewritten(module, dataclasses.replace(file, records=kept)))
        is_listed = layout.is_arch(name) or layout.is_device(name) or manifest.is_toolchain(name)
        listed = manifest.without(store.root, [name]) if is_listed else []
        if not gone and not listed:
            raise _nothing(store, name)
        store.replace_files([*plan, *listed], sweep=True)
    return list(dict.fromkeys(gone))


def _nothing(store: BaselineStore, name: str) -> BaselineError:
    return BaselineError(
        f"{quoted(name)}: there is no such record in {store.root}. Name a test file, a node id, or a node id and "
        "' [workload]', as gpuperf baselines list shows them"
    )
