"""Missing records: what is recorded and the run did not judge, a line for each cause; and where the run was partial.

A run answers for the test files below its paths, and for the tests that it was given by name.  What else is
recorded, and what ``-k``, a splitter or another plugin deselects, is left out: it is counted, and never missing.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pytest

from pytest_gpuperf.baselines import layout, manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError, unreadable
from pytest_gpuperf.formatting import first_of, numbered
from pytest_gpuperf.model.architectures import plain
from pytest_gpuperf.model.evidence import Key, StaticRecord, is_below
from pytest_gpuperf.model.result import Outcome
from pytest_gpuperf.report.remarks import with_flags
from pytest_gpuperf.results import TestsFound
from pytest_gpuperf.run import Run
from pytest_gpuperf.session.exit_policy import missing_fails

NAMED = 3
"""Workloads or files that a line names before it counts the rest."""
FILE_MISSING = "the file is missing"
PUT_BEHIND = "move code that needs times or data behind the last gpuperf(...) and cuda_kernel(...)"


class MissingCause(enum.Enum):
    """Why nothing of a record was judged."""

    DELETED = "its test was deleted or renamed"
    SKIPPED = "its test was skipped, or failed as expected"
    NEEDED_GPU = "its test needs a GPU before this workload"
    NOT_REACHED = "its test did not reach it"
    LEFT_OUT = "the run was not asked for it"


OF_RECORDS = "or remove its records: gpuperf baselines rm NAME; if it was renamed: gpuperf baselines mv OLD NEW"
REMEDIES = {
    MissingCause.DELETED: f"restore it, {OF_RECORDS}",
    MissingCause.SKIPPED: "remove the skip, measure before the expected failure, or delete the test",
    MissingCause.NEEDED_GPU: f"{PUT_BEHIND}: without a GPU a test ends there by itself, and needs no skip",
    MissingCause.NOT_REACHED: (
        "let it call cuda_kernel(...) or gpuperf(...) again, for this architecture too, and keep its name by "
        f"gpuperf(..., name=...); {PUT_BEHIND}"
    ),
}


class Missing(NamedTuple):
    """A record for one target that the run did not judge."""

    key: Key
    target: str
    cause: MissingCause
    detail: str = ""
    """The reason of a skip, as the test gives it; for a deleted test, whether its file is missing."""


class Seen:
    """The collected tests of a run, their ends, and the recorded workloads.  Raises ``BaselineError``."""

    def __init__(self, session: pytest.Session, run: Run, found: TestsFound) -> None:
        self._config, self._found, self._results = session.config, found, run.results
        self._cut_short = session.exitstatus != pytest.ExitCode.OK
        evidence, places = self._results.evidence, run.store.places()
        self._models = found.models | {one.device.slug for one in evidence if one.device is not None}
        self._targets = {*_expected_archs(run), *self._models}
        self._has_gpu = bool(self._models) or run.options.require_gpu
        self.recorded = {
            (key, at): record
            for at, of in places
            for (key, _), record in run.store.load(at, of).items()
            if not (isinstance(record, StaticRecord) and record.captured)
        }
        self._works = {work.key: work for one in evidence for work in one.workloads}
        self._judged = {(one.key, one.target) for one in self._results.judgements if one.kind in ("static", "time")}
        self._kernels = {
            (work.key.node_id, arch, record.kernel)
            for work in self._works.values()
            for arch, record in work.static.items()
            if not work.launched
        }
        """Those that were judged and not launched: their records are not missing, whatever the workload's name."""
        self._timed: dict[Key, set[str]] = {}
        for key, target in self.recorded:
            self._timed.setdefault(key, set()).update(() if layout.is_arch(target) else (target,))
        self._timed_here = {key.node_id for key, models in self._timed.items() if models & self._models}

    def missing(self) -> list[Missing]:
        """Records without a verdict, except those of failed tests and of targets of other runs."""
        return [
            Missing(key, target, cause, detail)
            for (key, target), record in self.recorded.items()
            if (key, target) not in self._judged and (key.node_id, target, record.kernel) not in self._kernels
            for cause, detail in self._causes(key, target)
        ]

    def _causes(self, key: Key, target: str) -> Iterable[tuple[MissingCause, str]]:
        """One cause with its detail, or none."""
        node, found = key.node_id, self._found
        if any(is_below(node, place) for place in found.failed):
            return
        skipped = [why for place, why in found.skipped.items() if is_below(node, place)]
        if node in found.tests - found.selected:
            yield MissingCause.LEFT_OUT, ""
        elif node in found.tests or skipped:
            if target in self._targets:
                yield from [self._skipped(skipped[0])] if skipped else self._of_test(key, target)
        elif found.lacks(self._config, key):
            yield MissingCause.DELETED, "" if (self._config.rootpath / key.module).is_file() else FILE_MISSING
        else:
            yield MissingCause.LEFT_OUT, ""

    def _of_test(self, key: Key, target: str) -> Iterable[tuple[MissingCause, str]]:
        """The cause for a test that was selected."""
        end, evidence = self._results.ends.get(key.node_id), self._results.by_test.get(key.node_id)
        whole = evidence is not None and evidence.whole  # then what it lacks is no matter of how it ended
        if end is None:
            yield MissingCause.LEFT_OUT if self._cut_short else MissingCause.NOT_REACHED, "the run ended before it"
        elif (end.how == "failed" and not whole) or self._is_of_others(key, target):
            return
        elif whole or (key in self._works and self._works[key].launched):
            yield MissingCause.NOT_REACHED, ""
        elif evidence is not None and evidence.status == "static only":
            yield MissingCause.NEEDED_GPU, ""
        elif end.how == "passed":
            yield MissingCause.NOT_REACHED, evidence.reason if evidence is not None else ""
        else:
            yield self._skipped(end.reason)

    def _is_of_others(self, key: Key, target: str) -> bool:
        """Whether a GPU, or Triton, decides what is compiled or timed, and this run has another one."""
        work, timed = self._works.get(key), self._timed[key]
        if not layout.is_arch(target):
            return False
        if work is not None and work.static:
            return self._has_gpu or work.toolchain.lower().startswith("triton")
        return bool(timed) and not timed & self._models and key.node_id in self._timed_here

    def _skipped(self, reason: str) -> tuple[MissingCause, str]:
        needs_gpu = _NEEDS_GPU.search(reason) is not None and not self._has_gpu
        return MissingCause.NEEDED_GPU if needs_gpu else MissingCause.SKIPPED, reason


def _expected_archs(run: Run) -> Sequence[str]:
    """Architectures whose records this run should reach: its targets, and those that kernels name themselves.

    Not the variants of another architecture than the GPU's: their tests are skipped there.
    """
    here, named = run.native_archs, () if run.options.archs else run.store.archs()
    return (*run.targets, *(one for one in named if plain(one) == one or not here or plain(one) in here))


_NEEDS_GPU = re.compile(r"gpu|cuda|cupy|nvidia|driver|device", re.IGNORECASE)
"""Words in the reason of a skip that needs a GPU."""


def note_missing(session: pytest.Session, run: Run, outcome: Outcome) -> None:
    """Note a line for each cause: in ``outcome.missing`` if the policy fails it, else in ``outcome.left_out``.

    An update, and a comparison with a revision that has more tests, only names them.
    """
    found, options = run.results.found, run.options
    if not options.gates or found is None or session.exitstatus == pytest.ExitCode.INTERRUPTED:
        return
    try:
        lines = list(_lines(run, Seen(session, run, found)))
    except (BaselineError, pytest.UsageError) as problem:
        lines = [(f"missing records cannot be listed: {problem}", missing_fails(options))]
    outcome.missing += tuple(line for line, fails in lines if fails and options.update is None)
    outcome.left_out += tuple(line for line, fails in lines if not fails or options.update is not None)


def _lines(run: Run, seen: Seen) -> Iterator[tuple[str, bool]]:
    """Lines, and whether each fails the run.  Raises ``BaselineError``."""
    options, revision = run.options, run.revision
    renamed = {work.was for test in run.results.evidence for work in test.workloads}
    by_cause: dict[MissingCause, list[Missing]] = {}
    for one in (one for one in seen.missing() if one.key not in renamed):  # whose new name says so
        by_cause.setdefault(one.cause, []).append(one)
    left_out = {one.key for one in by_cause.pop(MissingCause.LEFT_OUT, ())}
    if revision is not None and (missing := by_cause.pop(MissingCause.DELETED, [])):
        names = list(dict.fromkeys(one.key.node_id for one in missing))
        yield f"MISSING here, only in {revision.name}: {first_of(names, NAMED)}", False
    for cause, those in by_cause.items():
        of_records = f"; {OF_RECORDS}" if cause is MissingCause.NOT_REACHED and revision is None else ""
        yield f"{_line(cause, those)}{of_records}", missing_fails(options, needs_gpu=cause is MissingCause.NEEDED_GPU)
    if not options.against:
        yield from _target_lines(run)
    if left_out:
        of = numbered(len({key for key, _ in seen.recorded}), "workload")
        line = f"it left out {len(left_out)} of {of} with a baseline (by paths, -k, -m, --lf or a plugin)"
        yield f"partial run: {line}; a run of all tests says what is missing", False


def _line(cause: MissingCause, those: Sequence[Missing]) -> str:
    """A line with the workloads, their targets, the cause and the remedy."""
    workloads = numbered(len({one.key for one in those}), "workload")
    targets = ", ".join(dict.fromkeys(one.target for one in those))
    of_test = cause in (MissingCause.DELETED, MissingCause.SKIPPED)  # then it is no matter of a workload
    names = dict.fromkeys(
        (one.key.module if one.detail == FILE_MISSING else one.key.node_id if of_test else str(one.key))
        + (f" ({one.detail})" if one.detail else "")
        for one in those
    )
    named = first_of(list(names), NAMED)
    return f"{workloads} NOT-MEASURED on {targets}: {cause.value}: {named}. To do: {REMEDIES[cause]}"


def _target_lines(run: Run) -> Iterator[tuple[str, bool]]:
    """Lines on targets that this run leaves out, and on targets of the manifest without records."""
    options, store = run.options, run.store
    listed, there = store.manifest(), store.targets()
    if options.archs:
        others = [arch for arch in store.archs() if arch not in options.archs]
        if others:
            yield f"partial run: --gpuperf-arch leaves out {first_of(others, 9)}, with baselines", False
    elif listed is None and there:
        raise unreadable(store.root / manifest.FILE, "it is missing, and it says which targets are gated")
    elif listed is not None and (empty := [one for one in listed.targets if one not in there]):
        archs = ",".join(filter(layout.is_arch, empty))
        flags = [*([f"--gpuperf-arch={archs}"] if archs else []), *options.repeated]
        machine = "" if all(map(layout.is_arch, empty)) else ", on a machine with such a GPU"
        listing = options.baselines / manifest.FILE
        named = f"{listing} names {', '.join(empty)}, which has no baselines: NOT-MEASURED"
        record = f"record them: {with_flags('pytest --update-baselines=new', flags)}{machine}"
        drop = "or restore them from git; or drop them: gpuperf baselines rm TARGET"
        yield f"{named}. To do: {record}; {drop}", missing_fails(options)
    if options.update is None and run.results.gathered_anything and not there:
        where = f"{options.baselines} (rootdir {run.config.rootpath})"
        remedy = "--rootdir or --gpuperf-baselines names their folder"
        yield elsewhere(run) or f"there are no baselines in {where}: if there should be, {remedy}", False


def elsewhere(run: Run) -> str:
    """Baselines of the tests, where pytest's root has none: of a project between the two, or of one around the root."""
    root, name = run.config.rootpath, run.options.baselines.name
    files = {root / test.module for test in run.results.evidence}
    records = [(at, f"*/{file.relative_to(at).with_suffix(layout.RECORDS)}") for file in files for at in file.parents]
    found = sorted({at for at, own in records if any((at / name).glob(manifest.FILE if root in at.parents else own))})
    if not found or run.store.root.exists():
        return ""
    there = ", ".join(str(at / name) for at in found)
    return f"these tests have their baselines in {there}. To do: for each, pytest --rootdir={found[0]} {found[0]}"
