"""Small, explicit evidence for the tests of ``judge``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from pytest_gpuperf.judge.time_case import TimeCase
from pytest_gpuperf.model.evidence import Identity, Key, Occupancy, Session, StaticProfile, StaticRecord, TimeRecord
from pytest_gpuperf.model.timed_round import Round

KEY = Key(module="suite/test_a.py", test="test_a", workload="copy")

PROFILE = StaticProfile(
    registers=32, stack_bytes=0, spill_store_bytes=0, spill_load_bytes=0, shared_bytes=1024, constant_bytes=560,
    barriers=1, code_bytes=1024, instructions=60, opcodes={"global_load": 4, "global_store": 4, "fp32": 20},
    code_hash="aa",
)  # fmt: skip
OCCUPANCY = Occupancy(blocks_per_sm=8, warps_per_sm=64, fraction=1.0, limiter="warps")
STATIC = StaticRecord(kernel="copy", source_hash="s", profile=PROFILE, block=(256, 1, 1), occupancy=OCCUPANCY)


def static(*, occupancy: Occupancy | None = OCCUPANCY, dynamic_shared_bytes: int = 0, **profile: Any) -> StaticRecord:
    """The sample kernel with some figures changed (and therefore another hash)."""
    changed = msgspec.structs.replace(PROFILE, **{"code_hash": "bb", **profile})
    return msgspec.structs.replace(
        STATIC, profile=changed, occupancy=occupancy, dynamic_shared_bytes=dynamic_shared_bytes
    )


def one_round(midmean: float, *, session: str = "old", process: int = 0, clock: int | None = None) -> Round:
    return Round(
        session=session, process=process, samples=30, midmean=midmean, median=midmean,
        quantiles=(midmean,) * 5, minimum=midmean, maximum=midmean,
        sm_clock_mhz=None if clock is None else (clock, clock),
    )  # fmt: skip


def rounds(times: Sequence[Sequence[float]], *, session: str = "old", clock: int | None = None) -> tuple[Round, ...]:
    """One inner sequence of midmeans per process."""
    return tuple(
        one_round(float(time), session=session, process=process, clock=clock)
        for process, group in enumerate(times)
        for time in group
    )


def noisy(
    rng: np.random.Generator, processes: int, each: int, *, centre: float = 50_000.0, between: float = 0.001,
    within: float = 0.001, shift: float = 0.0,
) -> list[list[float]]:  # fmt: skip
    """Midmeans with a normal effect per process and per round; standard deviations of log times."""
    logs = (
        np.log(centre * (1 + shift)) + rng.normal(0, between, (processes, 1)) + rng.normal(0, within, (processes, each))
    )
    return [[float(time) for time in group] for group in np.exp(logs)]


def session(id: str = "old", **changes: Any) -> Session:
    made = Session(
        id=id, date="2026-11-21T10:00:00Z", gpu="NVIDIA H200", uuid="GPU-1", driver="580.1", cuda="13.0",
        toolchain="nvrtc 13.0.88", cupy="14.2", timer="cupti", tick_ns=32.0, overhead_ns=0.0, power_limit_w=700,
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


IDENTITY = Identity(
    code="aa", launch="grid=(64, 1, 1) block=(256, 1, 1) shared=0",
    arguments=("float32[1024] align=512", "int32=7"), source="s", toolchain="nvrtc 13.0.88",
)  # fmt: skip


def identity(**changes: Any) -> Identity:
    return msgspec.structs.replace(IDENTITY, **changes)


EDITED = identity(code="bb", source="t")
"""The same workload by edited code."""


def time_case(
    old_times: Sequence[Sequence[float]], new_times: Sequence[float], *, new: Identity = EDITED,
    now: Session | None = None, old_clock: int | None = None, new_clock: int | None = None, **changes: Any,
) -> TimeCase:  # fmt: skip
    """``old_times``: midmeans per process of the baseline; ``new_times``: midmeans of the candidate's process."""
    record = TimeRecord(identity=IDENTITY, timer="cupti", cache="cold", rounds=rounds(old_times, clock=old_clock))
    fields: dict[str, Any] = {
        "key": KEY, "target": "nvidia-h200", "baseline": record, "sessions": {"old": session()}, "identity": new,
        "timer": "cupti", "cache": "cold", "session": now or session("new"),
        "rounds": rounds([new_times], session="new", clock=new_clock),
    }  # fmt: skip
    return TimeCase(**{**fields, **changes})
