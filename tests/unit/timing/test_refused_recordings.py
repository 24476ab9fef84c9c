"""Recordings of an idle H200 that older rules called disturbed: loops of 2 to 10 us, and a copy of two levels.

Samples in nanoseconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_gpuperf.device.timers.resolution import step_of
from pytest_gpuperf.model.timed_round import DeviceState
from pytest_gpuperf.timing import sample_stats
from pytest_gpuperf.timing.health import Batch, disturbances
from pytest_gpuperf.timing.rounds import summarise

FOUND = json.loads((Path(__file__).parent / "refused_recordings.json").read_text(encoding="utf-8"))
RECORDINGS = [pytest.param(one["takes"], id=f"{one['kernel']} {n}") for n, one in enumerate(FOUND["recordings"])]
QUIET = DeviceState(sm_clock_mhz=1980)


def said_of(take: dict[str, Any]) -> list[str]:
    samples = [np.asarray(one, dtype=np.float64) for one in take["samples"]]
    steps = [step_of(one.tolist(), FOUND["tick_ns"]) for one in samples]
    alternating = sample_stats.alternates(np.concatenate(samples), steps[-1])
    return [
        text
        for one, step in zip(samples, steps, strict=True)
        for text in disturbances(
            Batch(
                summarise(one, session="", process=0, step_ns=step), QUIET, QUIET, step,
                outliers=sample_stats.outlier_share(one, step),
            ),
            alternating=alternating, averages=True,
        )
    ]  # fmt: skip


@pytest.mark.parametrize("takes", RECORDINGS)
def test_they_are_fit_at_the_first_try(takes: list[dict[str, Any]]) -> None:
    assert takes[0]["disturbed"]
    assert said_of(takes[0]) == []


@pytest.mark.parametrize("takes", RECORDINGS)
def test_every_reading_lies_on_the_clock_s_grid(takes: list[dict[str, Any]]) -> None:
    steps = [step_of(samples, FOUND["tick_ns"]) for take in takes for samples in take["samples"]]
    assert steps == pytest.approx([FOUND["tick_ns"]] * len(steps), rel=0.01)


def test_without_the_rules_for_steps_and_alternation_they_are_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_stats, "OUTLIER_STEPS", 1.0)
    monkeypatch.setattr(sample_stats, "MOST_ALTERNATING", 0.001)
    monkeypatch.setattr(sample_stats, "LEAST_OUTLYING_NS", 0.0)
    disturbed = [bool(said_of(one["takes"][0])) for one in FOUND["recordings"]]
    assert sum(disturbed) >= len(disturbed) - 2


def test_core_means_scatter_half_as_much_as_plain_means() -> None:
    """From round to round of the loops of 2 and 2.5 us; relative to their mean, so that both count alike."""
    spreads = []
    for kernel in ("loop 2 us", "loop 2.5 us"):
        rounds = [
            np.asarray(samples, dtype=np.float64)
            for one in FOUND["recordings"]
            if one["kernel"] == kernel
            for take in one["takes"]
            for samples in take["samples"]
        ]
        plain = np.array([one.mean() for one in rounds])
        core = np.array([sample_stats.core_mean(one, 32.0) for one in rounds])
        spreads.append(core.std() / plain.std())
    assert max(spreads) < 0.7
