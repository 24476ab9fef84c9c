"""``gpuperf explain``: what holds a workload back, and why it changed, from the last run or from the baselines."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.advise.limiting_resource import state_of
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.baseline_folder import add_folder, folder_of
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.explain.comparison import Estimates, recorded_side
from pytest_gpuperf.explain.explanation import explain_all, explained
from pytest_gpuperf.formatting import first_of
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.process import last_run

CLOSE_MATCHES = 5


class WantedWorkloads(NamedTuple):
    """Workloads to explain: a node id or the beginning of one, and perhaps a workload's name."""

    node_id: str
    workload: str | None = None

    def includes(self, key: Key) -> bool:
        """A module, a class, a test, a test with its parameters, or one workload as tables name it: ``test [name]``."""
        node = key.node_id
        inside = self.node_id in (node, f"{node} [{key.workload}]") or node.startswith(
            (f"{self.node_id}::", f"{self.node_id}[")
        )
        return inside and (self.workload is None or self.workload == key.workload)

    def seen_from(self, start: Path, root: Path) -> WantedWorkloads:
        """The same as pytest names it from ``root``, if it begins with a file's path seen from the folder ``start``."""
        module, colons, test = self.node_id.partition("::")
        file = (start / module).resolve()
        if not file.is_file() or root.resolve() not in file.parents:
            return self
        return self._replace(node_id=f"{file.relative_to(root.resolve()).as_posix()}{colons}{test}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node_id", metavar="NODEID", help="a test, class or module, as pytest names it or by its path")
    parser.add_argument("workload", metavar="WORKLOAD", nargs="?", help="one workload of the test (default: all)")
    parser.add_argument("--baseline", action="store_true", help="read the committed baselines, not the last run")
    add_folder(parser)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Explain workloads; returns the exit status, 0.  Raises ``GpuperfError``."""
    wanted = WantedWorkloads(parsed.node_id, parsed.workload)
    if parsed.baseline or parsed.baselines is not None:
        folder = folder_of(parsed.baselines, Path.cwd())
        _from_baselines(wanted.seen_from(Path.cwd(), folder.parent), folder, write)
    else:
        _from_last_run(wanted, Path.cwd(), write)
    return 0


def _from_last_run(wanted: WantedWorkloads, start: Path, write: Callable[[str], object]) -> None:
    path = last_run.find(start)
    if path is None:
        raise GpuperfError(
            f"no run has left its evidence in {start} or above in its repository ({last_run.FOLDER}/{last_run.FILE}): "
            "run pytest --gpuperf first, or read the baselines: gpuperf explain --baseline"
        )
    run, wanted = last_run.read(path), wanted.seen_from(start, last_run.root_of(path))
    found = [(test, work) for test in run.tests for work in test.workloads if wanted.includes(work.key)]
    if not found:
        raise _unmatched(wanted, [work.key for test in run.tests for work in test.workloads], "the last run")
    write(f"last run: {run.date}, gpuperf {run.plugin}, {path}\n")
    lines = explain_all(BaselineStore(last_run.baselines_of(path, run)), found, CompileCache())
    write("\n" + "\n".join(lines))


def _from_baselines(wanted: WantedWorkloads, baselines: Path, write: Callable[[str], object]) -> None:
    store = BaselineStore(baselines)
    targets = (*store.devices(), *store.archs())
    keys = dict.fromkeys(key for target in targets for key in store.keys(target))
    found = [key for key in keys if wanted.includes(key)]
    if not found:
        raise _unmatched(wanted, list(keys), f"the baselines in {baselines}")
    estimates = Estimates(store, {}, CompileCache())
    for key in found:
        sides = list(_recorded(store, key, estimates))
        for side, whose in sides:
            head, *figures = explained(key, side, state_of(side, {}))
            several = len({other for _, other in sides}) > 1
            write("\n".join([head, *([f"    {whose}"] if several else []), *figures]) + "\n\n")


def _recorded(store: BaselineStore, key: Key, estimates: Estimates) -> Iterator[tuple[Side, str]]:
    """Recorded sides of a workload: by GPU where it was timed, else by architecture; each with its GPU or compiler."""
    timed = {target: record for target in store.devices() if (record := store.time(target, key)) is not None}
    known = [(arch, toolchain) for arch in store.archs() for toolchain in store.compilers(arch, key)]
    codes = {place: store.static(place[0], key, place[1]) for place in known}
    for target, time in timed.items():
        own = [place for place, one in codes.items() if one is not None and one.profile.code_hash == time.identity.code]
        arch, toolchain = [*own[:1], *known[-1:], ("", "")][0]
        yield recorded_side(store, key, target, arch, toolchain, estimates), f"GPU: {target}"
    for arch, toolchain in known if not timed else ():
        yield recorded_side(store, key, "", arch, toolchain, estimates), f"compiler: {toolchain}"


def _unmatched(wanted: WantedWorkloads, keys: Sequence[Key], where: str) -> GpuperfError:
    """The error for no match, with the nearest names."""
    if not keys:
        return GpuperfError(f"there are no workloads in {where}")
    names = list(dict.fromkeys(key.workload for key in keys if WantedWorkloads(wanted.node_id).includes(key)))
    if names:
        return GpuperfError(
            f"{wanted.node_id} has no workload {wanted.workload!r} in {where}; it has: {', '.join(names)}"
        )
    nodes = list(dict.fromkeys(key.node_id for key in keys))
    close = difflib.get_close_matches(wanted.node_id, nodes, n=CLOSE_MATCHES, cutoff=0.4)
    hint = f"close to it: {', '.join(close)}" if close else f"it has {first_of(nodes, CLOSE_MATCHES)}"
    return GpuperfError(f"{wanted.node_id} is not in {where}; {hint}")
