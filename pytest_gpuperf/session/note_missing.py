"""The end of a run: notes the missing records, and says where the run was partial."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from pytest_gpuperf.baselines import layout, manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError, missing_manifest
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.tests_found import TestsFound, searched_by
from pytest_gpuperf.formatting import first_of, numbered
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import Outcome
from pytest_gpuperf.model.verdict import EvidenceKind, Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.report.remarks import with_flags
from pytest_gpuperf.results import Results
from pytest_gpuperf.run import Run
from pytest_gpuperf.session import exit_policy
from pytest_gpuperf.session.baselines_elsewhere import no_baselines_line
from pytest_gpuperf.session.missing import (
    FILE_GONE,
    LeftOut,
    Missing,
    MissingCause,
    RecordedWork,
    RunSeen,
    missing_records,
)

NO_WORKLOAD = Key(module="", test="", workload="")
"""Of a judgement on a whole target."""
NAMED = 3
"""Tests or files that a line names before it counts the rest."""
REMEDIES = {
    MissingCause.DELETED: (
        "restore it, or take its records away: gpuperf baselines rm NAME; after a renaming: "
        "gpuperf baselines mv OLD NEW"
    ),
    MissingCause.SKIPPED: "take the skip away, or measure before the expected failure; or delete the test",
    MissingCause.NEEDED_GPU: (
        "without a GPU the plugin itself ends a test after its machine code was compared: such a test needs no skip"
    ),
    MissingCause.NOT_REACHED: "let it call cuda_kernel(...) or gpuperf(...) again; or delete the test",
}  # fmt: skip


def note_missing(session: pytest.Session, book: Results, outcome: Outcome) -> None:
    """Note a line for each cause: in ``outcome.missing`` if the policy fails it, else in ``outcome.left_out``.

    An update, and a comparison with a revision that has more tests, only names them.
    """
    config = session.config
    options, worker = config.stash[stash.OPTIONS], stash.run_of(config)
    found = config.stash[stash.FINDING].found if stash.FINDING in config.stash else None
    if not options.gates or found is None or session.exitstatus == pytest.ExitCode.INTERRUPTED:
        return
    try:
        recorded = list(recorded_work(worker.store))
        no_records = () if options.archs or options.against else _targets_without_records(options.baselines)
        no_baselines = no_baselines_line(config)
    except BaselineError as problem:
        lines = (f"missing records cannot be found: {problem}",)
        if options.open == "fail":
            outcome.missing += lines
        else:
            outcome.left_out += lines
        return
    missing, left_out = missing_records(recorded, judged_work(book), run_seen(session, book, found))
    red, remarks = _sorted(missing, book, options, worker)
    if no_records:
        line = targets_line(no_records, options)
        (red if exit_policy.fails(_not_measured(no_records[0], "static"), options) else remarks).append(line)
    if options.update is not None:
        red, remarks = [], [*red, *remarks]
    outcome.missing += tuple(red)
    outcome.left_out += (*remarks, *filter(None, [no_baselines]), *_partial_lines(left_out, recorded, options))


def recorded_work(store: BaselineStore) -> Iterator[RecordedWork]:
    """Everything in the folder, by target.  Raises ``BaselineError``."""
    for target in store.targets():
        kind: EvidenceKind = "static" if layout.is_arch(target) else "time"
        yield from (RecordedWork(key, target, kind) for key in store.keys(target))


def judged_work(book: Results) -> set[RecordedWork]:
    """What a run has judged, and what its tests themselves say that they did not reach."""
    return {RecordedWork(one.key, one.target, one.kind) for one in (*book.judgements, *book.unreached)}


def run_seen(session: pytest.Session, book: Results, found: TestsFound) -> RunSeen:
    """What this run collected, how its tests ended, and what it was to search."""
    config = session.config
    options, worker = config.stash[stash.OPTIONS], stash.run_of(config)
    models = found.models | {one.device.slug for one in book.evidence if one.device is not None}
    return RunSeen(
        found=found, ends=config.stash[stash.FINDING].ends, reported={one.node_id for one in book.evidence},
        stopped={one.node_id for one in book.evidence if one.status != "complete"},
        targets={*_archs_of(worker), *models}, has_gpu=bool(models) or options.require_gpu,
        searches=searched_by(config),
        exists=lambda module: (config.rootpath / module).is_file(),
        cut_short=session.exitstatus != pytest.ExitCode.OK,
    )  # fmt: skip


def _archs_of(worker: Run) -> tuple[str, ...]:
    """Static targets of the run; none where the folder of the baselines cannot be read, or no GPU be asked for."""
    try:
        return worker.expected_archs
    except (BaselineError, pytest.UsageError):
        return ()


def _targets_without_records(folder: Path) -> tuple[str, ...]:
    """Those that the manifest names and the folder no longer has.  Raises ``BaselineError``."""
    found = manifest.read(folder)
    if found is None and BaselineStore(folder).targets():
        raise missing_manifest(folder / manifest.FILE)
    return () if found is None else found.gone_from(folder)


def _sorted(missing: Iterable[Missing], book: Results, options: Options, worker: Run) -> tuple[list[str], list[str]]:
    """Lines that fail the run, and remarks."""
    red: list[Missing] = []
    others: list[Missing] = []
    gone: list[Missing] = []
    for one in missing:
        if one.cause is MissingCause.DELETED and worker.revision is not None:
            gone.append(one)
        else:
            judged = _not_measured(one.record.target, one.record.kind, needs_gpu=one.cause is MissingCause.NEEDED_GPU)
            (red if exit_policy.fails(judged, options) else others).append(one)
    renamed = {work.was for test in book.evidence for work in test.workloads}
    names = list(dict.fromkeys(one.record.key.node_id for one in gone if one.record.key not in renamed))
    only_there = f"GONE, only in {worker.revision.name}: {first_of(names, NAMED)}" if worker.revision and names else ""
    return missing_lines(red), [*missing_lines(others), *filter(None, [only_there])]


def _not_measured(target: str, kind: EvidenceKind, *, needs_gpu: bool = False) -> Judgement:
    return Judgement(
        key=NO_WORKLOAD, target=target, kind=kind, verdict=Verdict.NOT_MEASURED, needs_gpu=needs_gpu
    )  # fmt: skip


# --- lines ---------------------------------------------------------------------------------------


def missing_lines(missing: Iterable[Missing]) -> list[str]:
    """A line for each cause: which workloads, on what, why, and what to do."""
    by_cause: dict[MissingCause, list[Missing]] = {}
    for one in missing:
        by_cause.setdefault(one.cause, []).append(one)
    return [_line(cause, those) for cause, those in by_cause.items()]


def _line(cause: MissingCause, those: list[Missing]) -> str:
    workloads = numbered(len({one.record.key for one in those}), "workload")
    targets = ", ".join(dict.fromkeys(one.record.target for one in those))
    names = list(dict.fromkeys(map(_name, those)))
    return f"{workloads} NOT-MEASURED on {targets}: {cause.value}: {first_of(names, NAMED)}. To do: {REMEDIES[cause]}"


def _name(one: Missing) -> str:
    key = one.record.key
    name = key.module if one.detail == FILE_GONE else key.node_id
    return f"{name} ({one.detail})" if one.detail else name


def targets_line(targets: Sequence[str], options: Options) -> str:
    """Of targets that the manifest names and that have no records: whether they were deleted or are still to come."""
    folder = options.baselines
    folders = " ".join(str(folder / target) for target in targets)
    return (
        f"there are no baselines of {', '.join(targets)}, NOT-MEASURED: {folder / manifest.FILE} names what has no "
        f"file. To do: record them: {' and '.join(recording_commands(targets, options.repeated))}; or restore what was "
        f"deleted (git checkout -- {folders}), or drop the target: gpuperf baselines rm TARGET"
    )


def recording_commands(targets: Sequence[str], repeated: Sequence[str] = ()) -> list[str]:
    """The updates that record targets which have no records: one for machine code, one for each GPU model."""
    command = with_flags("pytest --update-baselines=new", repeated)
    archs = ",".join(filter(layout.is_arch, targets))
    for_code = [f"{command} --gpuperf-arch={archs}"] if archs else []
    return [*for_code, *(f"{command}, on a machine with {one}" for one in targets if not layout.is_arch(one))]


def _partial_lines(left_out: Iterable[LeftOut], recorded: Iterable[RecordedWork], options: Options) -> list[str]:
    """What a partial run says of itself; empty of a full run."""
    lines = []
    tests = {one.record.key for one in left_out}
    if tests:
        of = len({one.key for one in recorded})
        lines.append(
            f"partial run: it left out {len(tests)} of {numbered(of, 'workload')} with a baseline (by paths, -k, -m, "
            "--lf or a plugin); a run of all tests says what is missing"
        )
    targets = dict.fromkeys(one.target for one in recorded if one.kind == "static")
    others = [arch for arch in targets if options.archs and arch not in options.archs]
    if others and not options.against:
        lines.append(f"partial run: --gpuperf-arch leaves out {', '.join(others)}, which have baselines")
    return lines
