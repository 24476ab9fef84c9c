"""How time, counters and launch of a workload differ between two states of the baselines."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import statistics
from collections.abc import Sequence

from pytest_gpuperf.formatting import duration
from pytest_gpuperf.judge.code_diff import text_changes
from pytest_gpuperf.judge.counter_verdict import CounterRule, compare_counters
from pytest_gpuperf.judge.log_times import mean_time_ns
from pytest_gpuperf.model.beside_figures import Beside, HostTime
from pytest_gpuperf.model.evidence import Key, TimeRecord
from pytest_gpuperf.model.verdict import Change
from pytest_gpuperf.model.workload_records import WorkloadRecords


@dataclasses.dataclass(frozen=True)
class RunDiff:
    """How time, counters and launch of a workload differ on one GPU model."""

    gpu: str
    times_ns: tuple[float, float] | None
    """Geometric means of the rounds' midmeans, before and after; None if the rounds are the same."""
    conditions: tuple[Change, ...] = ()
    """What was run, and how it was timed."""
    counters: tuple[Change, ...] = ()
    """Those that left their bands, the largest relative change first."""
    others: int = 0
    """Counters that differ and stay in their bands, or have none."""
    sets: tuple[int, int] = (0, 0)
    """How many counters were removed and added."""

    @property
    def ratio(self) -> float:
        """After over before; 1 if the rounds are the same."""
        return self.times_ns[1] / self.times_ns[0] if self.times_ns else 1.0


def run_diffs(
    key: Key, old: WorkloadRecords, new: WorkloadRecords, rules: Sequence[CounterRule], *, code_told: bool
) -> tuple[RunDiff, ...]:
    """One for each GPU model that differs.  ``code_told``: that the machine code differs is said elsewhere."""
    gpus = sorted(old.times.keys() & new.times.keys())
    found = [_run_diff(key, gpu, old.times[gpu], new.times[gpu], rules, code_told=code_told) for gpu in gpus]
    return tuple(one for one in found if one is not None)


def _run_diff(
    key: Key, gpu: str, old: TimeRecord, new: TimeRecord, rules: Sequence[CounterRule], *, code_told: bool
) -> RunDiff | None:
    """None if nothing differs that is compared."""
    if old == new:
        return None
    counters = _moved_counters(key, gpu, old, new, rules)
    shared = old.counters.keys() & new.counters.keys()
    differ = sum(old.counters[name] != new.counters[name] for name in shared)
    times = None if old.rounds == new.rounds else (mean_time_ns(old.rounds), mean_time_ns(new.rounds))
    found = RunDiff(
        gpu=gpu, times_ns=times, conditions=tuple(_conditions(old, new, code_told=code_told)), counters=counters,
        others=differ - len(counters), sets=(len(old.counters) - len(shared), len(new.counters) - len(shared)),
    )  # fmt: skip
    return found if found != RunDiff(gpu, None) else None


def _conditions(old: TimeRecord, new: TimeRecord, *, code_told: bool) -> list[Change]:
    was, now = old.identity, new.identity
    code = [] if code_told else text_changes(("machine code", was.code[:8] or "none", now.code[:8] or "none"))
    return [
        *code,
        *text_changes(
            ("timer", old.timer, new.timer), ("L2", old.cache, new.cache),
            *_launch(was.launch, now.launch), *_arguments(was.arguments, now.arguments),
            ("declared bytes", _declared(old.bytes), _declared(new.bytes)),
            ("declared operations", _declared(old.flops), _declared(new.flops)),
            *_beside(old.beside or Beside(), new.beside or Beside()),
        ),
    ]  # fmt: skip


_PART = re.compile(r"(\w+)=(\([^)]*\)|\S+)")
"""Of a launch: ``grid=(1024, 1, 1)``."""


def _launch(old: str, new: str) -> list[tuple[str, str, str]]:
    """Grid, block and shared memory, each by itself where they can be told apart."""
    if old == new:
        return []
    was, now = dict(_PART.findall(old)), dict(_PART.findall(new))
    if was.keys() == now.keys() and was != now:
        return [(name, was[name], now[name]) for name in was]
    return [("launch", old or "none", new or "none")]


def _arguments(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, str, str]]:
    """Each by itself, without what is the same in both; all as one if there are more or fewer."""
    if len(old) != len(new):
        return [("arguments", ", ".join(old) or "none", ", ".join(new) or "none")]
    return [(f"argument {at}", *_parts(*pair)) for at, pair in enumerate(zip(old, new, strict=True), start=1)]


def _parts(old: str, new: str) -> tuple[str, str]:
    """Words that differ: of ``int32[8] align=256`` and ``int32[9] align=256`` the first."""
    was, now = old.split(), new.split()
    if len(was) != len(now) or old == new:
        return old, new
    differ = [(one, other) for one, other in zip(was, now, strict=True) if one != other]
    return " ".join(one for one, _ in differ), " ".join(other for _, other in differ)


def _declared(amount: int | None) -> str:
    return "none" if amount is None else str(amount)


def _beside(old: Beside, new: Beside) -> list[tuple[str, str, str]]:
    return [
        ("device memory", _bytes(old.memory_bytes), _bytes(new.memory_bytes)),
        ("error", _error(old.accuracy), _error(new.accuracy)),
        ("host time", _host_time(old.host), _host_time(new.host)),
    ]


def _bytes(size: int | None) -> str:
    return "none" if size is None else f"{size} bytes"


def _error(error: float | None) -> str:
    return "none" if error is None else f"{error:.4g}"


def _host_time(time: HostTime | None) -> str:
    """Its time, and the ratio that the gate compares."""
    return "none" if time is None else f"{duration(time.time_ns)} (x{statistics.median(time.ratios):.4g} of its canary)"


def _moved_counters(
    key: Key, gpu: str, old: TimeRecord, new: TimeRecord, rules: Sequence[CounterRule]
) -> tuple[Change, ...]:
    others = old.counters.keys() & new.counters.keys() - {rule.name for rule in rules}
    table = [*rules, *map(_unknown, sorted(others))]
    changes = compare_counters(key, gpu, old.counters, new.counters, table).changes
    return tuple(sorted(changes, key=_relative, reverse=True))


@functools.lru_cache(maxsize=1024)
def _unknown(name: str) -> CounterRule:
    """A metric that a team added, of which nobody knows a band."""
    return CounterRule(name, name, better="neutral")


def _relative(change: Change) -> float:
    """Size of a change of a count, as a distance of logarithms; infinite from or to none."""
    before, after = float(change.before), float(change.after)
    return abs(math.log(after / before)) if before > 0 and after > 0 else math.inf
