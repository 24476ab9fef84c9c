"""How long the judge takes: per paired block, per look at unpaired rounds, per static comparison.  Needs no GPU.

    python benchmarks/judging.py

Target: under 1 ms per paired block on one core.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from pytest_gpuperf.judge.block_decision import judge_blocks
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.judge.unpaired import judge_unpaired

from pytest_gpuperf.model.timed_round import Round

BLOCK_TARGET_MS = 1.0
REPETITIONS = 20


def main() -> int:
    block_ms = milliseconds(judge_growing_sequence) / len(SEQUENCE)
    look_ms = milliseconds(lambda: judge_unpaired(OLD, NEW, Policy()))
    print(f"paired block    {block_ms:.3f} ms   (target {BLOCK_TARGET_MS:g} ms)")
    print(f"unpaired look   {look_ms:.3f} ms")
    return 0 if block_ms <= BLOCK_TARGET_MS else 1


def milliseconds(call: Callable[[], object]) -> float:
    """Median wall-clock time of a call."""
    taken = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        call()
        taken.append((time.perf_counter() - start) * 1000)
    return sorted(taken)[REPETITIONS // 2]


COIN = random.Random(1)
SEQUENCE = [COIN.gauss(0.0075, 0.004) for _ in range(128)]
"""Log ratios inside the zone, which no block decides: the longest way."""


def judge_growing_sequence() -> None:
    for used in range(1, len(SEQUENCE) + 1):
        judge_blocks(SEQUENCE[:used], Policy(alpha=2e-6))


def rounds(session: str, processes: int, each: int) -> list[Round]:
    return [
        Round(
            session=session, process=process, samples=30, midmean=COIN.gauss(1e5, 100), median=1e5,
            quantiles=(1e5,) * 5, minimum=1e5, maximum=1e5,
        )
        for process in range(processes)
        for _ in range(each)
    ]  # fmt: skip


OLD, NEW = rounds("old", 5, 2), rounds("new", 1, 16)

if __name__ == "__main__":
    raise SystemExit(main())
