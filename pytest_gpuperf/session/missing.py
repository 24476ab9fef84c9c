"""Missing records: what is recorded and the run did not judge, a line for each cause; and where the run was partial.

A run answers for the test files below its paths, and for the tests that it was given by name.  What else is
recorded, and what ``-k``, a splitter or another plugin deselects, is left out: it is counted, and never missing.
A test that ran to its end fails itself for a part of its own that it did not reach (``session.not_reached``).
"""

from __future__ import annotations

import dataclasses
import enum
import os
import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import pytest

from pytest_gpuperf.baselines import layout, manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError, unreadable
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.tests_found import FindingTests, TestsFound, is_deleted
from pytest_gpuperf.formatting import first_of, numbered
from pytest_gpuperf.model.evidence import Key, is_below
from pytest_gpuperf.model.result import Outcome
from pytest_gpuperf.model.verdict import EvidenceKind, Judgement, Verdict
from pytest_gpuperf.options import USUAL_FOLDER, Options
from pytest_gpuperf.report.remarks import with_flags
from pytest_gpuperf.results import Results
from pytest_gpuperf.run import Run
from pytest_gpuperf.session import exit_policy

NAMED = 3
"""Tests or files that a line names before it counts the rest."""
FILE_GONE = "the file is gone"


class MissingCause(enum.Enum):
    """Why nothing of a record was judged."""

    DELETED = "its test was deleted or renamed"
    SKIPPED = "its test was skipped, or failed as expected"
    NEEDED_GPU = "its test needs a GPU and was skipped"
    NOT_REACHED = "its test did not reach it"
    LEFT_OUT = "the run was not asked for it"


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


class Missing(NamedTuple):
    """A record for one target that the run did not judge."""

    key: Key
    target: str
    cause: MissingCause
    detail: str = ""
    """The reason of a skip, as the test gives it; what is gone with a deleted test."""


@dataclasses.dataclass(frozen=True)
class RunSeen:
    """What a run collected and how it went."""

    config: pytest.Config
    finding: FindingTests
    found: TestsFound
    results: Results
    targets: Collection[str]
    """Architectures and GPU models that the run judges."""
    has_gpu: bool
    """A GPU was there, or had to be."""
    cut_short: bool
    """It ended with a failure before its last test, as by ``-x``."""

    def missing(self, key: Key, target: str) -> Missing | None:
        """None: a failure that is red itself says why, or it is of a target of other runs."""
        node, found = key.node_id, self.found
        if any(is_below(node, place) for place in found.failed):
            return None
        skipped = [why for place, why in found.skipped.items() if is_below(node, place)]
        if node in found.tests and node not in found.selected:
            return Missing(key, target, MissingCause.LEFT_OUT)
        if node in found.tests or skipped:
            if target not in self.targets:
                return None
            return self._skipped(key, target, skipped[0]) if skipped else self._of_test(key, target)
        if not is_deleted(self.config, found, key):
            return Missing(key, target, MissingCause.LEFT_OUT)
        there = (self.config.rootpath / key.module).is_file()
        return Missing(key, target, MissingCause.DELETED, "" if there else FILE_GONE)

    def _of_test(self, key: Key, target: str) -> Missing | None:
        """Of a test that was to run."""
        end, evidence = self.finding.ends.get(key.node_id), self.results.results.get(key.node_id)
        if end is None:
            cause = MissingCause.LEFT_OUT if self.cut_short else MissingCause.NOT_REACHED
            return Missing(key, target, cause, "the run ended before it")
        stopped = evidence is not None and evidence.status != "complete"
        if end.how == "failed" or stopped or (evidence is not None and end.how == "passed"):
            return None  # the test itself says what it did not reach
        if end.how == "passed":
            return Missing(key, target, MissingCause.NOT_REACHED)
        return self._skipped(key, target, end.reason)

    def _skipped(self, key: Key, target: str, reason: str) -> Missing:
        needs_gpu = _GPU_WORDS.search(reason) is not None and not self.has_gpu
        return Missing(key, target, MissingCause.NEEDED_GPU if needs_gpu else MissingCause.SKIPPED, reason)


_GPU_WORDS = re.compile(r"gpu|cuda|cupy|nvidia|driver|device", re.IGNORECASE)
"""In the reason of a skip: it asks for a GPU, or for what comes with one."""


def note_missing(session: pytest.Session, outcome: Outcome) -> None:
    """Note a line for each cause: in ``outcome.missing`` if the policy fails it, else in ``outcome.left_out``.

    An update, and a comparison with a revision that has more tests, only names them.
    """
    run = stash.run_of(session.config)
    finding = session.config.stash.get(stash.FINDING, None)
    if not run.options.gates or finding is None or session.exitstatus == pytest.ExitCode.INTERRUPTED:
        return
    red: list[str] = []
    remarks: list[str] = []
    try:
        if finding.found is not None:
            red, remarks = _lines(run, _run_seen(session, run, finding, finding.found))
    except (BaselineError, pytest.UsageError) as problem:
        (red if run.options.open == "fail" else remarks).append(f"missing records cannot be found: {problem}")
    if run.options.update is not None:
        red, remarks = [], [*red, *remarks]
    outcome.missing += tuple(red)
    outcome.left_out += tuple(remarks)


def _run_seen(session: pytest.Session, run: Run, finding: FindingTests, found: TestsFound) -> RunSeen:
    """Raises ``BaselineError``."""
    models = found.models | {one.device.slug for one in run.results.evidence if one.device is not None}
    return RunSeen(
        config=session.config, finding=finding, found=found, results=run.results,
        targets={*run.expected_archs, *models}, has_gpu=bool(models) or run.options.require_gpu,
        cut_short=session.exitstatus != pytest.ExitCode.OK,
    )  # fmt: skip


def _lines(run: Run, seen: RunSeen) -> tuple[list[str], list[str]]:
    """Lines that fail the run, and remarks.  Raises ``BaselineError``."""
    options, results = run.options, run.results
    recorded = [(key, target) for target in run.store.targets() for key in run.store.keys(target)]
    judgements = [one for one in (*results.judgements, *results.unreached) if one.kind in ("static", "time")]
    judged = {(one.key, one.target) for one in judgements}
    states = [seen.missing(*one) for one in recorded if one not in judged]
    missing = [one for one in states if one is not None and one.cause is not MissingCause.LEFT_OUT]
    left_out = {one.key for one in states if one is not None and one.cause is MissingCause.LEFT_OUT}
    gone = [one for one in missing if one.cause is MissingCause.DELETED and run.revision is not None]
    fails = [
        one for one in missing if one not in gone and _fails(one.target, options, one.cause is MissingCause.NEEDED_GPU)
    ]
    red = _lines_by_cause(fails)
    remarks = _lines_by_cause(one for one in missing if one not in gone and one not in fails)
    renamed = {work.was for test in results.evidence for work in test.workloads}
    names = list(dict.fromkeys(one.key.node_id for one in gone if one.key not in renamed))
    if run.revision is not None and names:
        remarks.append(f"GONE, only in {run.revision.name}: {first_of(names, NAMED)}")
    empty = () if options.archs or options.against else _targets_without_records(run.store)
    if empty:
        (red if _fails(empty[0], options) else remarks).append(_targets_line(empty, options))
    remarks += filter(None, [_no_baselines_line(run)])
    if left_out:
        of = numbered(len({key for key, _ in recorded}), "workload")
        remarks.append(
            f"partial run: it left out {len(left_out)} of {of} with a baseline (by paths, -k, -m, --lf or a plugin); "
            "a run of all tests says what is missing"
        )
    archs = filter(layout.is_arch, dict.fromkeys(target for _, target in recorded))
    others = [arch for arch in archs if options.archs and arch not in options.archs]
    if others and not options.against:
        remarks.append(f"partial run: --gpuperf-arch leaves out {', '.join(others)}, which have baselines")
    return red, remarks


def _fails(target: str, options: Options, needs_gpu: bool = False) -> bool:
    kind: EvidenceKind = "static" if layout.is_arch(target) else "time"
    key = Key(module="", test="", workload="")
    judgement = Judgement(key=key, target=target, kind=kind, verdict=Verdict.NOT_MEASURED, needs_gpu=needs_gpu)
    return exit_policy.fails(judgement, options)


def _lines_by_cause(missing: Iterable[Missing]) -> list[str]:
    """A line for each cause: which workloads, on what, why, and what to do."""
    by_cause: dict[MissingCause, list[Missing]] = {}
    for one in missing:
        by_cause.setdefault(one.cause, []).append(one)
    return [_line(cause, those) for cause, those in by_cause.items()]


def _line(cause: MissingCause, those: list[Missing]) -> str:
    workloads = numbered(len({one.key for one in those}), "workload")
    targets = ", ".join(dict.fromkeys(one.target for one in those))
    names = dict.fromkeys(
        (one.key.module if one.detail == FILE_GONE else one.key.node_id) + (f" ({one.detail})" if one.detail else "")
        for one in those
    )
    named = first_of(list(names), NAMED)
    return f"{workloads} NOT-MEASURED on {targets}: {cause.value}: {named}. To do: {REMEDIES[cause]}"


def _targets_without_records(store: BaselineStore) -> tuple[str, ...]:
    """Those that the manifest names and the folder no longer has.  Raises ``BaselineError``."""
    found, targets = store.manifest(), store.targets()
    if found is None and targets:
        raise unreadable(store.root / manifest.FILE, "it is missing, and it says which targets are gated")
    return () if found is None else tuple(one for one in found.targets if one not in targets)


def _targets_line(targets: Sequence[str], options: Options) -> str:
    """Of targets that the manifest names and that have no records: whether they were deleted or are still to come."""
    folder = options.baselines
    command = with_flags("pytest --update-baselines=new", options.repeated)
    archs = ",".join(filter(layout.is_arch, targets))
    commands = [f"{command} --gpuperf-arch={archs}"] if archs else []
    commands += [f"{command}, on a machine with {one}" for one in targets if not layout.is_arch(one)]
    return (
        f"there are no baselines of {', '.join(targets)}, NOT-MEASURED: {folder / manifest.FILE} names what has no "
        f"file. To do: record them: {' and '.join(commands)}; or restore what was deleted (git checkout -- "
        f"{' '.join(str(folder / target) for target in targets)}), or drop the target: gpuperf baselines rm TARGET"
    )


def _no_baselines_line(run: Run) -> str:
    """Of a gated run whose folder has no baselines: where some are nearby, as of a run below the root; else empty."""
    options, root = run.options, run.config.rootpath
    if options.update is not None or options.against or not run.results.gathered_anything or run.store.targets():
        return ""
    where = f"there are no baselines in {options.baselines} (rootdir {root})"
    places = [folder / USUAL_FOLDER for folder in (*root.parents, *sorted(root.iterdir()))]
    others = [str(one) for one in places if one != options.baselines and os.path.isfile(one / manifest.FILE)]  # noqa: PTH113 no error of a locked folder
    if not others:
        return f"{where}: if there should be, --rootdir or --gpuperf-baselines names their folder"
    return (
        f"{where}; there are some in {', '.join(others)}. To do: start pytest in their folder's parent or "
        "name it with --rootdir or --gpuperf-baselines; if they are others: pytest --update-baselines=new"
    )
