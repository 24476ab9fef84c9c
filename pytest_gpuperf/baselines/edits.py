"""What a team edits in its baselines by hand: records that follow a renaming, and records that go."""

from __future__ import annotations

import re

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError, quoted
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import Key

_WORKLOAD = re.compile(r"(?P<module>[^:]+)::(?P<test>.+?) \[(?P<workload>.+)\]")


def _renamed(key: Key, old: str, new: str) -> Key:
    """Where a record that is of ``old`` goes when that becomes ``new``."""
    if found := _WORKLOAD.fullmatch(new):
        return Key(**found.groupdict())
    module, _, test = (new + key.node_id.removeprefix(old)).partition("::")
    return Key(module=module, test=test, workload=key.workload)


def edit(store: BaselineStore, old: str, new: str | None = None) -> list[str]:
    """Give the records of ``old`` the name ``new`` for every target, or remove them where that is None.

    What is removed may also be a target or a compiler, which goes from the manifest too; machine code that no record
    names any more goes along.  Returns a line for each record.  Raises ``BaselineError`` where there is nothing to
    edit, or a record has the new name already; then nothing was written.
    """
    if new is not None and _kind(old) != _kind(new):
        raise BaselineError(
            f"{quoted(old)} and {quoted(new)} are not of one kind: name two test files, two tests, or two workloads, "
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
                    raise BaselineError(f"{target}: {goes} has a record of its own: remove it first. Nothing was moved")
                there[goes, toolchain] = record
        plan = [store.rewritten(*place, those) for place, those in files.items() if those != store.load(*place)]
        listed = store.manifest()
        if new is None and listed is not None and old in (*listed.targets, *listed.toolchains):
            targets, toolchains = ({*names} - {old} for names in (listed.targets, listed.toolchains))
            rest = manifest.manifest_of(targets, toolchains, listed.named_by_kernels)
            plan.append((store.root / manifest.FILE, rest.encoded()))
        if not plan:
            raise BaselineError(
                f"{quoted(old)}: there is no such record in {store.root}. Name a test file, a node id, or a node id "
                "and ' [workload]', as gpuperf baselines list shows them"
            )
        store.replace_files(plan, sweep=new is None)
    return list(dict.fromkeys(f"{one[0]}: {one[1]}{f' -> {one[3]}' if one[3] else ''}" for one in found))


def _kind(name: str) -> tuple[bool, bool]:
    return "::" in name, _WORKLOAD.fullmatch(name) is not None
