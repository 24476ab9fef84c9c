"""What a newly recorded time is measured against from now on: its anchor, which an update moves only on purpose.

Pure: the record that was there and what the run found go in, the new record with its anchor comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.judge.comparability import other_arguments
from pytest_gpuperf.judge.log_times import mean_time_ns
from pytest_gpuperf.model.evidence import Anchor, Key, Session, TimeRecord
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import REMARKED, Judgement, Verdict

PROVEN = (Verdict.SLOWER, Verdict.SUSPECT)


def with_anchor(
    new: TimeRecord, old: TimeRecord | None, found: WorkloadEvidence, sessions: Mapping[str, Session],
    has_cubin: Callable[[str], bool], options: Options,
) -> TimeRecord:  # fmt: skip
    """The new record with its anchor: none where it is accepted on purpose, or the first.

    Nor has it one if it does other work than the anchor did, and the two could not be paired.

    ``found`` is what the updating run judged; ``sessions`` are those on record, by id.
    """
    if options.update == "anchor" or old is None:
        return new
    if new.identity.same_execution(old.identity) and new.cache == old.cache:
        return msgspec.structs.replace(new, anchor=old.anchor)
    anchor = old.anchor or anchor_of(old, sessions, has_cubin)
    if new.identity.same_execution(anchor.identity):
        return new
    ratio, proven = _step(found) if old.anchor is None else _drift(found)
    if ratio is None and other_arguments(anchor.identity, new.identity):
        return new
    steps = anchor.steps if old.anchor is None else anchor.steps + 1
    return msgspec.structs.replace(new, anchor=msgspec.structs.replace(anchor, steps=steps, ratio=ratio, proven=proven))


def anchor_of(record: TimeRecord, sessions: Mapping[str, Session], has_cubin: Callable[[str], bool]) -> Anchor:
    """A record as the anchor of the one that takes its place; without its cubin where the store has lost that."""
    first = record.rounds[0].session
    return Anchor(
        identity=record.identity, timer=record.timer, cache=record.cache,
        time_ns=mean_time_ns(record.rounds), session=first,
        date=sessions[first].date if first in sessions else "", kernel=record.kernel, symbol=record.symbol,
        cubin=record.cubin if record.cubin and has_cubin(record.cubin) else "", grid=record.grid, block=record.block,
        dynamic_shared_bytes=record.dynamic_shared_bytes,
    )  # fmt: skip


def become_anchors(accepted: Iterable[TestEvidence], options: Options) -> list[tuple[str, Key]]:
    """GPU model and key of unchanged workloads whose drift an update accepts on purpose: their records stay."""
    if options.update != "anchor":
        return []
    return [
        (judged.target, work.key)
        for test in accepted
        for work in test.workloads
        if (judged := work.time_judgement) is not None and _is_unchanged(judged) and has_drifted(work)
    ]


def _is_unchanged(judged: Judgement) -> bool:
    """Whether it ran the code on record, whatever its time was."""
    return judged.verdict is Verdict.UNCHANGED or (judged.time is not None and judged.time.method == "identity")


def has_drifted(work: WorkloadEvidence) -> bool:
    """Whether a workload is beyond its tolerance from its anchor, as far as this run knows."""
    judged = work.time_judgement
    drift = judged.drift if judged is not None else None
    return work.anchor_judgement is not None or (drift is not None and drift.exceeds(REMARKED))


def accepts_drift(work: WorkloadEvidence, options: Options) -> bool:
    """Whether an update records changed code, whatever its verdict, because it is far from its anchor."""
    judged = work.time_judgement
    return options.update == "anchor" and judged is not None and not _is_unchanged(judged) and has_drifted(work)


def _step(found: WorkloadEvidence) -> tuple[float | None, bool]:
    """Ratio to the record, which is the anchor, and whether it is proven to be slower."""
    judged, figures = found.time_judgement, found.time_figures
    return None if figures is None else figures.ratio, judged is not None and judged.verdict in PROVEN


def _drift(found: WorkloadEvidence) -> tuple[float | None, bool]:
    """Ratio to the anchor, and whether it is proven: by two processes where one had to confirm it."""
    judged, red = found.time_judgement, found.anchor_judgement
    drift = judged.drift if judged is not None else None
    if drift is None or judged is None:
        return None, False
    if red is not None:
        return drift.ratio, red.verdict in PROVEN
    by_steps = judged.time is not None and judged.time.method == "unpaired"
    return drift.ratio, drift.proven or (by_steps and judged.verdict in PROVEN)
