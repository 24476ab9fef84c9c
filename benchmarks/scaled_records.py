"""What the gate says where the machine changed and the code did not: recorded times, scaled.

    python benchmarks/scaled_records.py [--factor 1.03] [BASELINES]

Of each workload's last recording the rounds of one process are taken for today's and those of the others for the
record, divided by the factor, and the canaries of the recording too: a machine that has become slower by it.  Nothing
is measured; a GPU took the rounds when the baselines were recorded.  Prints how often each verdict came.  Exit status 1
if one was SLOWER, or if unscaled records of unchanged machine code are anything but UNCHANGED.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.judge.time_case import TimeCase

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.judge.time_verdict import judge_time
from pytest_gpuperf.model.evidence import Session, TimeRecord
from pytest_gpuperf.model.timed_round import Round
from pytest_gpuperf.model.verdict import Verdict

ROOT = Path(__file__).parents[1]


def cases(store: BaselineStore, device: str, factor: float) -> Iterator[TimeCase]:
    """One for each workload with machine code that was recorded in more than one process."""
    for key in store.keys(device):
        record, sessions = store.time(device, key), store.sessions(device, key.module)
        if record is None or not record.cubin:
            continue
        last = next(one for one in reversed(sessions) if one.id in {taken.session for taken in record.rounds})
        rounds = [taken for taken in record.rounds if taken.session == last.id]
        today = max(taken.process for taken in rounds)
        before = tuple(scaled(taken, 1 / factor) for taken in rounds if taken.process != today)
        if before:
            yield TimeCase(
                key=key, target=device, baseline=of_rounds(record, before), sessions={last.id: faster(last, factor)},
                identity=record.identity, timer=record.timer, cache=record.cache, session=last,
                rounds=tuple(taken for taken in rounds if taken.process == today),
            )  # fmt: skip


def of_rounds(record: TimeRecord, rounds: tuple[Round, ...]) -> TimeRecord:
    return msgspec.structs.replace(record, rounds=rounds)


def scaled(taken: Round, factor: float) -> Round:
    return msgspec.structs.replace(taken, midmean=taken.midmean * factor)


def faster(session: Session, factor: float) -> Session:
    """The recording with canary kernels that took less time by the factor."""
    canaries = {name: time / factor for name, time in session.canaries.items()}
    return msgspec.structs.replace(session, canaries=canaries)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factor", type=float, default=1.03, help="by which the machine has become slower")
    parser.add_argument("baselines", nargs="?", type=Path, default=ROOT / "baselines")
    options = parser.parse_args()
    store = BaselineStore(options.baselines)
    wrong = False
    for device in store.devices():
        for factor in (1.0, options.factor):
            found = Counter(judge_time(case, Policy()).judgement.verdict for case in cases(store, device, factor))
            print(f"{device}, {factor:g} times as slow: {', '.join(f'{n} {v.value}' for v, n in found.most_common())}")
            wrong |= bool(found[Verdict.SLOWER]) or (factor == 1.0 and set(found) != {Verdict.UNCHANGED})
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
