"""Calibration: the campaign's kernels and the true ratios of their slower versions, into ``plan.json``.

Loops get theirs from executed instructions.  How a copy's time grows with its size is measured more finely: each
slower copy is paired with its baseline until the ratio is known to a few hundredths of a percent, and its size is
set again where it is off.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from campaign.cells import COPIES, PERCENTS, WANTED
from campaign.child import opened
from pytest_gpuperf.compile import CompileCache
from pytest_gpuperf.judge.votes import PairedPolicy
from pytest_gpuperf.pairing import pair
from pytest_gpuperf.selftest.counting import loop_code
from pytest_gpuperf.selftest.kernels import FAMILIES, compile_probes, launch_of
from pytest_gpuperf.selftest.subjects import Subject, effect_key, make_subjects

REFINED = (0.4, 1.0, 2.0)
"""Slowdowns of copies that are set by pairing."""
LOOKS = 2
"""Times that a copy's size is set again."""
REFINING = PairedPolicy(alpha=1e-300, alpha_faster=1e-300, beta=1e-300, blocks_max=100)


def calibrate(folder: Path, device_name: str, refine_s: float) -> int:
    """Write ``plan.json`` and say what is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    cache = CompileCache()
    device = opened(device_name)
    timer = device.timer(None)
    with device.lock():
        subjects = make_subjects(device, timer, WANTED, PERCENTS, cache)
        shares = len(COPIES) * len(REFINED) * LOOKS
        refined = [_refined(device, timer, one, cache, refine_s / shares) for one in subjects]
    (folder / "plan.json").write_bytes(msgspec.json.format(msgspec.json.encode(refined)))
    for subject in refined:
        print(_described(subject, device.facts.arch, cache), file=sys.stderr)
    return 0


def _refined(device: Any, timer: Any, subject: Subject, cache: CompileCache, seconds: float) -> Subject:
    if subject.name not in COPIES:
        return subject
    counts, known = dict(subject.counts), dict(subject.known)
    for percent in REFINED:
        key = effect_key(percent)
        for _ in range(LOOKS):
            added = counts[key] - subject.count
            ratio = _paired_ratio(device, timer, subject, counts[key], cache, seconds)
            known[key] = ratio
            if abs(ratio - 1 - percent / 100) < 0.02 * percent / 100 or ratio <= 1:
                break
            counts[key] = subject.count + min(
                round(added * percent / 100 / (ratio - 1)), subject.capacity - subject.count
            )  # fmt: skip
            known[key] = 1 + percent / 100
    return msgspec.structs.replace(subject, counts=counts, known=known)


def _paired_ratio(device: Any, timer: Any, subject: Subject, count: int, cache: CompileCache, seconds: float) -> float:
    """Ratio of the copy of ``count`` to its baseline: the mean of up to 100 blocks."""
    probe = msgspec.structs.replace(subject, count=count).baseline(surroundings=1)
    baseline = subject.baseline()
    binaries = compile_probes([baseline, probe], device.facts.arch, cache)
    launch = launch_of(device, binaries[baseline], FAMILIES[subject.family], subject.capacity)
    found = pair(
        device, timer, launch, binaries[baseline], REFINING, seed=time.time_ns() & 0xFFFFFFFF,
        candidate=binaries[probe], budget_s=seconds,
    )  # fmt: skip
    return math.exp(sum(found.r) / len(found.r))


def _described(subject: Subject, arch: str, cache: CompileCache) -> str:
    parts = [f"{subject.name}: {subject.duration_ns / 1000:.3f} us, count {subject.count}"]
    if subject.family == "loop":
        (binary,) = compile_probes([subject.baseline()], arch, cache).values()
        parts.append(f"{loop_code(binary).executed} instructions per thread")
    parts += [f"+{percent} % -> {ratio - 1:.4%}" for percent, ratio in subject.known.items()]
    return ", ".join(parts)
