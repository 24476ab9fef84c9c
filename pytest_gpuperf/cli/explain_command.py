"""``gpuperf explain``: what holds a workload back, and why it changed, from the last run or from the baselines."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.advise.limiting_resource import state_of
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.baseline_folder import add_folder, folder_of, seen_from_root
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.explain.comparison import Estimates, recorded_side
from pytest_gpuperf.explain.explanation import explain_all, explained
from pytest_gpuperf.formatting import first_of
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.process import last_run

CLOSE_MATCHES = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = "a file, class or test, as pytest names it or by its path; or 'NODEID [workload]'"
    parser.add_argument("node_id", metavar="NODEID", help=words)
    parser.add_argument("--baseline", action="store_true", help="read the committed baselines, not the last run")
    add_folder(parser)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Explain workloads; returns the exit status, 0.  Raises ``GpuperfError``."""
    if parsed.baseline or parsed.baselines is not None:
        folder = folder_of(parsed.baselines, Path.cwd())
        _from_baselines(seen_from_root(parsed.node_id, folder.parent), folder, write)
    else:
        _from_last_run(parsed.node_id, Path.cwd(), write)
    return 0


def _from_last_run(name: str, start: Path, write: Callable[[str], object]) -> None:
    path = last_run.find(start)
    if path is None:
        raise GpuperfError(
            f"no run has left its evidence in {start} or above in its repository ({last_run.FOLDER}/{last_run.FILE}): "
            "run pytest --gpuperf first, or read the baselines: gpuperf explain --baseline"
        )
    run, name = last_run.read(path), seen_from_root(name, last_run.root_of(path))
    found = [(test, work) for test in run.tests for work in test.workloads if work.key.is_of(name)]
    if not found:
        raise _unmatched(name, [work.key for test in run.tests for work in test.workloads], "the last run")
    write(f"last run: {run.date}, gpuperf {run.plugin}, {path}\n")
    lines = explain_all(BaselineStore(last_run.root_of(path) / run.baselines), found, CompileCache())
    write("\n" + "\n".join(lines))


def _from_baselines(name: str, baselines: Path, write: Callable[[str], object]) -> None:
    store = BaselineStore(baselines)
    keys = store.workloads()
    found = [key for key in sorted(keys) if key.is_of(name)]
    if not found:
        raise _unmatched(name, keys, f"the baselines in {baselines}")
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


def _unmatched(name: str, keys: Iterable[Key], where: str) -> GpuperfError:
    """The error for no match, with the nearest names."""
    names = list(map(str, keys))
    close = difflib.get_close_matches(name, names, n=CLOSE_MATCHES, cutoff=0.4)
    hint = f"close to it: {', '.join(close)}" if close else f"it has {first_of(names, CLOSE_MATCHES) or 'no workload'}"
    return GpuperfError(f"{name} is not in {where}; {hint}")
