"""The end of a run: its pairings go into the ledger, and what runs prove together is told, or fails this one."""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Iterator, Sequence

import pytest

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.context import ledger_file, stash
from pytest_gpuperf.context.book import Book
from pytest_gpuperf.context.repository import commit_of
from pytest_gpuperf.formatting import numbered, utc_now
from pytest_gpuperf.model.evidence import Identity
from pytest_gpuperf.model.ledger import LedgerLine
from pytest_gpuperf.model.result import Outcome


def add_up(config: pytest.Config, book: Book, outcome: Outcome) -> bool:
    """Append this run's pairings and say of their workloads what all runs prove: whether that fails this run."""
    options = config.stash[stash.OPTIONS]
    if (
        options.ledger == "off"
        or not options.gates
        or not any(work.notes for test in book.evidence for work in test.workloads)
    ):
        return False
    new = list(_lines(config, book))
    try:
        ledger = ledger_file.append(ledger_file.path_of(options.ledger_file, config.rootpath), new)
    except ledger_file.LedgerError as problem:
        lines = [str(problem)]
        red = options.ledger == "gate"  # what was asked for cannot be told
    else:
        lines = list(_proven(ledger.lines, new, options))
        red = options.ledger == "gate" and bool(lines)
        if ledger.passed_over:
            lines.append(f"{numbered(ledger.passed_over, 'line')} of the ledger could not be read: not counted")
    if red:
        outcome.drifted = "; ".join(lines)
    else:
        outcome.ledger = tuple(lines)
    return red


def get_ready(options: Options) -> None:
    """Load what adding up takes, which is half a second, while workers of pytest-xdist measure."""
    if options.ledger != "off":
        importlib.import_module("scipy.special")


def _lines(config: pytest.Config, book: Book) -> Iterator[LedgerLine]:
    date = utc_now()
    commit = commit_of(config.rootpath, config.stash[stash.OPTIONS].baselines)
    for test in book.evidence:
        for work in test.workloads:
            if test.device is None or work.identity is None:
                continue
            for note in work.notes:
                yield LedgerLine(
                    schema=ledger_file.SCHEMA, date=date, commit=commit.name, dirty=commit.dirty,
                    device=test.device.slug, workload=str(work.key), candidate=work.identity.code,
                    work=_work(work.identity), note=note,
                )  # fmt: skip


def _work(identity: Identity) -> str:
    return hashlib.sha256(f"{identity.launch} {identity.arguments}".encode()).hexdigest()[:12]


def _proven(lines: Sequence[LedgerLine], new: Sequence[LedgerLine], options: Options) -> Iterator[str]:
    """A line for each series of this run's that runs prove slower, or that drifts."""
    from pytest_gpuperf.judge.ledger_evidence import Vote, drift, slower_by_runs  # noqa: PLC0415 SciPy comes with it

    tolerance = options.ledger_tolerance
    of_series: dict[tuple[str, str, str, str], list[Vote]] = {_series(one): [] for one in new}
    for one in lines:
        if (known := of_series.get(_series(one))) is not None:
            known.append(Vote(one.candidate, one.commit, one.note.log_ratio))
    for series, votes in of_series.items():
        slower, drifting = slower_by_runs(votes, tolerance), drift(votes, tolerance)
        device, workload = series[:2]
        if slower is not None:
            yield (
                f"{workload} on {device}: x{slower.ratio:.4f}, slower than {tolerance:.2%} by "
                f"{numbered(slower.votes, 'vote')} together (E={_power(slower.log_e)}): what it was accepted as is "
                "faster"
            )
        elif drifting is not None:
            begin, end = (commit[:12] or "an unknown commit" for commit in (drifting.since, drifting.until))
            over = numbered(drifting.votes, "vote")
            yield (
                f"{workload} on {device}: x{drifting.ratio:.4f} by {over} of {end}: what it was accepted as is faster"
                if begin == end
                else f"{workload} on {device}: it drifts, x{drifting.ratio:.4f} by now, over {over} from {begin} to "
                f"{end}: gpuperf bisect finds a single step"
            )


def _series(line: LedgerLine) -> tuple[str, str, str, str]:
    """Lines of one series are compared: the same work against the same machine code on one GPU model."""
    return line.device, line.workload, line.work, line.note.opponent


def _power(log_e: float) -> str:
    return f"{math.exp(min(log_e, 700)):.2g}"
