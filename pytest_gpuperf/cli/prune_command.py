"""``gpuperf prune``: names baselines whose tests are gone, and removes them when told to.

A baseline is only called unused if its test would certainly have been met: a collection that was narrowed, or that
failed or skipped a module, is refused, and baselines of modules outside the searched folders are left alone.  A
workload is called unused if the last run saw its test run to the end, on a GPU, without it, or missed its machine code,
and neither the test file nor its records were written since.
"""

from __future__ import annotations

import argparse
import operator
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pytest_gpuperf.baselines.prune import prune, unused
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.baseline_folder import folder_of
from pytest_gpuperf.cli.collected_tests import CollectedTests, collect
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import first_of
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.fixture_names import fixture_of
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.verdict import Judgement
from pytest_gpuperf.process import last_run

SHOWN = 5
"""Tests or modules that a message names before it counts the rest."""


class PruneRefusedError(GpuperfError):
    """The collection does not tell which baselines are unused; the message says why and what to do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="PATH", nargs="*", help="test files and folders to look at (default: pytest's own)"
    )
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--yes", action="store_true", help="remove what is named")
    either.add_argument("--check", action="store_true", help="exit status 1 if there is anything to prune; for CI")
    parser.add_argument(
        "--baselines", metavar="DIR", help="folder of the baselines (default: as configured for pytest)"
    )


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    if parsed.baselines is not None:
        folder_of(Path(parsed.baselines), Path.cwd())
    return run(collect(parsed.paths, parsed.baselines), confirmed=parsed.yes, write=write, only_check=parsed.check)


def run(
    collection: CollectedTests, *, confirmed: bool, write: Callable[[str], object], only_check: bool = False
) -> int:
    """Name what is unused and, if ``confirmed``, remove it.  Returns the exit status.

    0; 1 if it was to ``only_check`` and there is something to prune.

    Raises ``PruneRefusedError``, and ``BaselineError`` for a file that cannot be read, locked or removed.
    """
    store, is_there = BaselineStore(collection.baselines), collection.baselines.is_dir()
    recorded = modules_with_baselines(store)
    inside = {module for module in recorded if collection.covers(module)}
    refuse_unless_whole(collection, {key.module for key in store.all_keys() if not fixture_of(key.test)} & inside)
    gone = workloads_gone(store, collection.root, write)
    unknown = {key.node_id for key in store.all_keys() if key.node_id.partition("[")[0] in collection.empty}
    alive = collection.tests | collection.fixtures | unknown
    found = unused(store, alive, modules_collected=inside, workloads_gone=gone)
    for entry in prune(store, found, lambda line: write(f"{line}\n")) if confirmed and is_there else found:
        write(f"{'removed' if confirmed else 'unused '}  {entry}\n")
    if not found:
        write(f"Nothing to prune in {collection.baselines}{'' if is_there else ': there is no such folder'}.\n")
    elif not confirmed:
        write(f"{len(found)} unused. Nothing was removed: add --yes to remove them.\n")
    if unknown:
        write(f"Not looked at, because their parameter sets are empty here: {some(sorted(unknown))}.\n")
    outside = sorted(recorded - inside)
    if outside:
        write(f"Not looked at, because outside of {', '.join(collection.scope)}: {some(outside)}.\n")
    return 1 if only_check and found else 0


def workloads_gone(store: BaselineStore, root: Path, write: Callable[[str], object]) -> set[tuple[str, Key]]:
    """Workloads on record, by target, that their tests did not have in the last run, or had without machine code.

    Empty if it does not tell.

    Only for the targets of that run: a test may have other workloads on another GPU.  Of a module whose tests or
    records were written since, by a git pull for one, it tells nothing.
    """
    path = last_run.path_below(root)
    if not path.is_file():
        return set()
    try:
        tests = last_run.read(path).tests
    except last_run.LastRunError as problem:
        write(f"Single workloads were not looked at: {problem}.\n")
        return set()
    had: dict[tuple[str, str, str], set[Key]] = {}
    for test in filter(operator.attrgetter("whole"), tests):
        archs = {arch for work in test.workloads for arch in work.static}
        for target in archs | ({test.device.slug} if test.device is not None else set()):
            had[target, test.module, test.test] = {work.key for work in test.workloads}
    lost = {(one.target, one.key) for test in tests for one in test.unreached if _is_lost(one, test)}
    gone = {
        (target, key)
        for target in store.targets()
        for key in store.keys(target)
        if (target, key) in lost or key not in had.get((target, key.module, key.test), {key})
    }
    newer = {module for module in {key.module for _, key in gone} if _is_newer(store, root, module, path)}
    if newer:
        write(
            f"Single workloads of {some(sorted(newer))} were not looked at: the tests or their records were written "
            "after the last run. Run pytest --gpuperf first.\n"
        )
    return {place for place in gone if place[1].module not in newer}


def _is_newer(store: BaselineStore, root: Path, module: str, run: Path) -> bool:
    """Whether a module's file or one of its records was written after the file ``run``."""
    moment, tests = run.stat().st_ctime, root / module
    return store.written_since(moment, module) is not None or (tests.exists() and tests.stat().st_ctime > moment)


def _is_lost(one: Judgement, test: TestEvidence) -> bool:
    """Whether it is of a workload that brings no machine code for the target any more, or that its test is without."""
    there = [work for work in test.workloads if work.key == one.key]
    return (one.kind == "static" and any(work.launched for work in there)) if there else test.whole


def modules_with_baselines(store: BaselineStore) -> set[str]:
    """Test modules that any target has baselines for."""
    return {module for target in store.targets() for module in store.modules(target)}


def refuse_unless_whole(collection: CollectedTests, recorded: Iterable[str]) -> None:
    """Raise ``PruneRefusedError`` unless every test of the recorded modules that still exist was seen."""
    if collection.failed:
        raise PruneRefusedError(f"{some(collection.failed)} could not be collected. Repair that first.")
    if collection.named_tests:
        raise PruneRefusedError(f"{some(collection.named_tests)} picks single tests. Name files or folders only.")
    if collection.deselected:
        raise PruneRefusedError(
            f"{len(collection.deselected)} tests were deselected ({some(collection.deselected)}). "
            "Take -k, -m, --lf and --deselect out of addopts and PYTEST_ADDOPTS."
        )
    if collection.skipped:
        raise PruneRefusedError(
            f"{some(collection.skipped)} skipped itself when imported, so its tests are unknown. "
            "Prune where it can be imported."
        )
    unseen = sorted(
        module for module in recorded if module not in collection.modules and (collection.root / module).exists()
    )
    if unseen:
        raise PruneRefusedError(f"{some(unseen)} exists but was not collected. Name its folder, or stop ignoring it.")


def some(names: Sequence[str]) -> str:
    """The first few of many names."""
    return first_of(names, SHOWN)
