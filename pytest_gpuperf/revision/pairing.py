"""A callable beside that of another revision, each in its process: both halves of the comparison."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from pytest_gpuperf.judge.same_work import other_arguments
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.limits import Limits
from pytest_gpuperf.model.time_record import CacheMode, Identity
from pytest_gpuperf.revision.foreign_files import foreign_files_of
from pytest_gpuperf.revision.process import give_up, process_for
from pytest_gpuperf.revision.recorded import NotPaired, revision_for
from pytest_gpuperf.run import Run
from pytest_gpuperf.timing.compare import BUDGETS, Compared, compare
from pytest_gpuperf.timing.process_opponent import Link, OtherSideLost, ProcessOpponent, Ready, serve_samples

# --- in the process that gates -------------------------------------------------------------------


def compare_with_revision(
    worker: Run, key: Key, identity: Identity, run: Callable[[], Any], reset: Callable[[], Any] | None,
    limits: Limits, alpha: float, *, cache: CacheMode, duration_ns: float, budget_s: float,
) -> Compared:  # fmt: skip
    """Paired blocks of the callable ``run`` against the revision's.  Raises ``NotPaired``.

    The caller holds the GPU's lock.
    """
    revision, process = revision_for(worker, key), None
    try:
        process = process_for(worker, revision)
        worker.give_memory_back()
        _require_same_work(identity, process.arrive(key))
        opponent = ProcessOpponent(
            worker.device, worker.timer, process.link, run, reset=reset, cache=cache,
            patience_s=60.0 + 2 * BUDGETS * budget_s,
        )  # fmt: skip
        return compare(
            worker.device, opponent, limits, alpha, seed=secrets.randbits(32), duration_ns=duration_ns,
            budget_s=budget_s, session=worker.session.id,
        )  # fmt: skip
    except OtherSideLost as problem:
        why = process.explained(problem) if process is not None else str(problem)
        give_up(worker.config)
        raise NotPaired(why) from None


def _require_same_work(identity: Identity, there: Ready) -> None:
    """Raise ``NotPaired`` if the other side's workload is not this one."""
    differs = other_arguments(there.identity, identity)
    if there.foreign:
        raise NotPaired(f"the revision's process used a file that is not its own: {there.foreign[0]}")
    if there.identity.launch != identity.launch:
        raise NotPaired(f"the workload was {there.identity.launch} there and is {identity.launch}")
    if differs:
        raise NotPaired("; ".join(differs))


# --- in the process of the other revision --------------------------------------------------------


def serve(
    worker: Run, link: Link, name: str, identity: Identity, run: Callable[[], Any], reset: Callable[[], Any] | None
) -> None:
    """Report that the test has reached this callable, and take samples until it may go on.

    Raises ``OtherSideLost`` if the process that gates has ended.
    """
    link.send(Ready(workload=name, identity=identity, foreign=foreign_files_of(worker.config).lines()))
    serve_samples(link, worker.device, worker.timer, run, reset)
