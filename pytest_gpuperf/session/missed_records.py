"""The end of a run: what is on record and no test came to, or no folder has any more."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import pytest

from pytest_gpuperf.baselines import layout, manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError, missing_manifest
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.config.options import Options
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.book import Book
from pytest_gpuperf.context.shard_plan import Shard
from pytest_gpuperf.context.tests_found import TestsFound
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.formatting import first_of, numbered
from pytest_gpuperf.judge.vanished import REMARKED, OnRecord, RunSeen, Vanished, WhyVanished, candidates, settled
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import Outcome
from pytest_gpuperf.model.verdict import EvidenceKind, Judgement, Verdict
from pytest_gpuperf.report.run_part import Missed
from pytest_gpuperf.report.vanished_lines import (
    gone_lines,
    is_gone,
    not_gated_line,
    targets_gone_line,
    vanished_lines,
)
from pytest_gpuperf.session import exit_policy
from pytest_gpuperf.session.baselines_elsewhere import recorded_twice, without_baselines
from pytest_gpuperf.session.run_scope import RunScope, scope_of

NO_WORKLOAD = Key(module="", test="", workload="")
"""Of a judgement on a whole target."""


MISSED: pytest.StashKey[Missed] = pytest.StashKey()
"""Of a run that knows what it collected."""


def tell_vanished(session: pytest.Session, book: Book, outcome: Outcome) -> None:
    """Note a line for each cause: those that fail the run in ``outcome.vanished``, the others in ``outcome.left_out``.

    They fail a full run that came to its end, by the policy for NOT-MEASURED.  An update only names them.
    """
    config = session.config
    options = config.stash[stash.OPTIONS]
    if not options.gates or stash.FINDING not in config.stash or session.exitstatus == pytest.ExitCode.INTERRUPTED:
        return
    found = config.stash[stash.FINDING].found
    if found is None:
        told = (NO_WORKER,) if book.tests_run else ()
        if options.open == "fail":
            outcome.vanished = told
        else:
            outcome.left_out += told
        return
    if session.exitstatus == pytest.ExitCode.OK:
        _tell_unfinished(config, outcome)
    scope, worker = scope_of(config), stash.worker_of(config)
    outcome.left_out += recorded_twice(config, found) if outcome.recorded else ()
    if found.partial:
        with contextlib.suppress(BaselineError):  # then there are some, and tests have said that they cannot be read
            outcome.elsewhere, _ = without_baselines(config, book, found)
        if getattr(config.option, "lf", False) and scope.full:  # by the ini file's addopts
            _tell_red(options, outcome, LAST_FAILED)
        return
    missed = config.stash[MISSED] = _missed(config, book, scope, found)
    outcome.elsewhere = missed.elsewhere
    models = models_of(book, found)
    red, remarks = missed_lines(
        missed, book, options, targets={*archs_of(worker), *models}, root=config.rootpath,
        has_gpu=bool(models) or options.require_gpu, revision="" if worker.revision is None else worker.revision.name,
    )  # fmt: skip
    strict = is_full(config) and came_to_end(config) and options.update is None
    outcome.vanished += tuple(red) if strict else ()
    outcome.left_out = (*outcome.left_out, *(() if strict else red), *remarks, *_not_gated(worker, options))


def read_ahead(store: BaselineStore, module: str) -> None:
    """Take a module's records from disk while workers of pytest-xdist measure: the end wants those of all."""
    with contextlib.suppress(BaselineError):  # said at the end
        for target in store.targets():
            store.modules(target)
            store.load(target, module)


def _not_gated(worker: Worker, options: Options) -> list[str]:
    """Where the gate is to be strict: which architectures on record it was told to leave out."""
    if not options.archs or options.open != "fail" or options.against:
        return []
    try:
        others = [arch for arch in worker.store.archs() if arch not in options.archs]
    except BaselineError:  # said elsewhere
        return []
    return [not_gated_line(others)] if others else []


def _tell_unfinished(config: pytest.Config, outcome: Outcome) -> None:
    """Of a run that is green so far, name the tests that it was to run and did not."""
    options, finding = config.stash[stash.OPTIONS], config.stash[stash.FINDING]
    selected = finding.found.selected if finding.found is not None else frozenset()
    left = sorted(selected - finding.ends.keys())
    if not left:
        return
    line = (
        f"{len(left)} of {numbered(len(selected), 'test')} did not come to an end, and what did not run is not proven: "
        f"{first_of(left, 1)}. To do: see to what ended the run, such as pytest.exit(..., returncode=0), and run it "
        "again"
    )
    _tell_red(options, outcome, line)


def _tell_red(options: Options, outcome: Outcome, line: str) -> None:
    """As what vanished where the gate is to be strict, and else as a remark."""
    if options.open == "fail" and options.update is None:
        outcome.vanished += (line,)
    else:
        outcome.left_out += (line,)


LAST_FAILED = (
    "--lf in addopts left out files of which no test failed before, and what did not run is not proven. To do: take it "
    "out of addopts, or remove the cache of pytest (.pytest_cache) that this run has found"
)

NO_WORKER = "what no test came to cannot be told: no worker of pytest-xdist told which tests it collected. Run it again"


def is_full(config: pytest.Config) -> bool:
    """Whether the run was asked for all tests, or compares with a revision, so that what it missed may fail it."""
    return scope_of(config).full or bool(config.stash[stash.OPTIONS].against)


def came_to_end(config: pytest.Config) -> bool:
    """Whether it is known what was collected, and every test that was chosen has ended."""
    found, ends = config.stash[stash.FINDING].found, config.stash[stash.FINDING].ends
    return found is not None and found.selected <= ends.keys()


def archs_of(worker: Worker) -> tuple[str, ...]:
    """Static targets of the run; none where the folder of the baselines cannot be read, or no GPU be asked for."""
    try:
        return worker.expected_archs
    except (BaselineError, pytest.UsageError):
        return ()


def models_of(book: Book, found: TestsFound) -> tuple[str, ...]:
    """GPU models that tests ran on, or would have had they not been skipped."""
    return tuple(sorted(found.models | {one.device.slug for one in book.evidence if one.device is not None}))


def _missed(config: pytest.Config, book: Book, scope: RunScope, found: TestsFound) -> Missed:
    """What this run, or this shard of it, answers for and came to no record of."""
    options, store = config.stash[stash.OPTIONS], stash.worker_of(config).store
    shard = Shard(1, 1) if options.shard is None else Shard(*options.shard)
    try:
        records = list(on_record(store))
        mine = [one for one in records if _is_run_here(one.key, found) or shard.answers_for(one.key.node_id)]
        seen = _seen(config, book, scope, found, records)
        targets = () if options.archs or options.against or shard.index != 1 else _targets_gone(options.baselines)
        elsewhere, nothing = without_baselines(config, book, found)
        return Missed(
            tuple(candidates(mine, seen)), tuple(targets), nothing_on_record=nothing, elsewhere=elsewhere
        )  # fmt: skip
    except BaselineError as problem:
        return Missed(unreadable=f"what no test came to cannot be told: {problem}")


def _targets_gone(folder: Path) -> tuple[str, ...]:
    """Those that the manifest names and the folder no longer has.  Raises ``BaselineError``."""
    found = manifest.read(folder)
    if found is None and BaselineStore(folder).targets():
        raise missing_manifest(folder / manifest.FILE)
    return () if found is None else found.gone_from(folder)


def _is_run_here(key: Key, found: TestsFound) -> bool:
    """Whether this shard runs the test, or one that asks for the fixture."""
    users = found.users.get(key.node_id, frozenset())
    return key.node_id in found.selected or not users.isdisjoint(found.selected)


def missed_lines(
    missed: Missed, book: Book, options: Options, *, targets: Collection[str], root: Path, has_gpu: bool, revision: str
) -> tuple[list[str], list[str]]:
    """Lines that may fail the run, and remarks; ``revision`` is what it was compared with, empty for baselines."""
    if missed.unreadable:
        return ([missed.unreadable], []) if options.open == "fail" else ([], [missed.unreadable])
    renamed = {work.was for one in book.evidence for work in one.workloads if work.was is not None}
    those = [
        one._replace(cause=WhyVanished.RENAMED) if one.record.key in renamed else one
        for one in settled(missed.candidates, targets, has_gpu=has_gpu)
    ]
    gone = [one for one in those if is_gone(one)] if revision else []
    those = [one for one in those if one not in gone]
    failing = [one for one in those if fails(one, options)]
    others = [one for one in those if one not in failing]
    red, remarks = (vanished_lines(some, root) for some in (failing, others))
    if revision:
        return red, [*remarks, *gone_lines(gone, revision)]
    if missed.targets_gone:
        line = targets_gone_line(missed.targets_gone, options.baselines, options.repeated)
        judged = _judgement(NO_WORKLOAD, missed.targets_gone[0], "static")
        (red if exit_policy.fails(judged, options) else remarks).append(line)
    return red, [*remarks, *([missed.nothing_on_record] if missed.nothing_on_record else [])]


def fails(one: Vanished, options: Options) -> bool:
    """Whether the policy fails a run for this record."""
    record = one.record
    judgement = _judgement(record.key, record.target, record.kind, for_want_of_gpu=one.for_want_of_gpu)
    return one.cause not in REMARKED and exit_policy.fails(judgement, options)


def _judgement(key: Key, target: str, kind: EvidenceKind, *, for_want_of_gpu: bool = False) -> Judgement:
    return Judgement(
        key=key, target=target, kind=kind, verdict=Verdict.NOT_MEASURED, for_want_of_gpu=for_want_of_gpu
    )  # fmt: skip


def on_record(store: BaselineStore) -> Iterator[OnRecord]:
    """Everything in the folder, by target.  Raises ``BaselineError``."""
    for target in store.targets():
        kind: EvidenceKind = "static" if layout.is_arch(target) else "time"
        yield from (OnRecord(key, target, kind) for key in store.keys(target))


def _seen(
    config: pytest.Config, book: Book, scope: RunScope, found: TestsFound, records: Iterable[OnRecord]
) -> RunSeen:
    modules = {record.key.module for record in records}
    told = {one.node_id: one for one in book.evidence}
    stopped = {node for node, one in told.items() if one.status != "complete"}
    ends = config.stash[stash.FINDING].ends
    return RunSeen(
        tests=found.tests, selected=found.selected, modules=found.modules, failed=found.failed, skipped=found.skipped,
        ends={node: end for node, end in ends.items() if node not in stopped},
        reached={
            node: {OnRecord(judged.key, judged.target, judged.kind) for judged in one.judgements}
            for node, one in told.items()
        },
        covered={module for module in modules if scope.covers(module)},
        missing={module for module in modules if not (config.rootpath / module).is_file()},
        full=scope.full, whole=scope.whole, elsewhere=found.elsewhere, users=found.users,
    )  # fmt: skip
