"""A/A tests: some launches of a run are compared with themselves.  A difference is the machine's doing."""

from __future__ import annotations

import random
import secrets
import warnings

from pytest_gpuperf.judge.decision import Decision
from pytest_gpuperf.timing.compare import compare
from pytest_gpuperf.timing.cubin_opponent import BaselineLaunch, CubinOpponent
from pytest_gpuperf.timing.rounds import LONG_NS
from pytest_gpuperf.workload.timed_workload import TimedWorkload

AA_TESTS, AA_BUDGET_S, AA_ALPHA = 3, 0.2, 1e-3
"""A/A tests of a run, in the mean; seconds for each; its rate of false warnings."""


def draw_aa_test(work: TimedWorkload) -> None:
    """Compare the workload with itself, if it is a short launch and drawn; warn if it is slower."""
    worker, request = work.worker, work.request
    launch, limits = request.launch, request.limits
    if launch is None or random.random() * worker.gated_tests >= AA_TESTS:
        return
    expected_ns = work.expected_ns()
    if expected_ns >= LONG_NS:
        return
    itself, device = BaselineLaunch(launch.binary), worker.device
    opponent = CubinOpponent(device, worker.timer, launch, itself, reset=request.reset, cache=request.cache)
    found = compare(
        device, opponent, limits, AA_ALPHA, seed=secrets.randbits(32), duration_ns=expected_ns,
        budget_s=AA_BUDGET_S,
    ).comparison  # fmt: skip
    if found.decision(limits, AA_ALPHA) is Decision.SLOWER:
        with warnings.catch_warnings():
            warnings.simplefilter("always")  # -W error would fail a test by it
            warnings.warn(
                f"A/A test: {work.key} is slower than itself, x{found.ratio:.3f} after {len(found.r)} blocks (seed "
                f"{found.seed}): look for other work on the GPU and for moving clocks (gpuperf doctor), and run again",
                stacklevel=2,
            )
