"""Calibration: the campaign's kernels and the true ratios of their slower versions, into ``plan.json``.

Loops get theirs from executed instructions.  How a copy's time grows with its size is measured more finely: each
slower copy is paired with its baseline until the ratio is known to a few hundredths of a percent, and its size is
set again where it is off.
"""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

import msgspec
from pytest_gpuperf.selftest.kernels import compile_probes
from pytest_gpuperf.selftest.known_slowdowns import Subject, make_subjects
from pytest_gpuperf.selftest.refine import LOOKS, refined
from pytest_gpuperf.selftest.sass_loop import loop_codes

from campaign.cells import COPIES, PERCENTS, WANTED
from campaign.child import opened
from pytest_gpuperf.compile.cache import CompileCache

REFINED = (0.4, 1.0, 2.0)
"""Slowdowns of copies that are set by pairing."""
ABOUT = (0.98, 1.02)
"""Times its name's, an effect is about right."""


def calibrate(folder: Path, device_name: str, refine_s: float) -> int:
    """Write ``plan.json`` and say what is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    cache = CompileCache()
    device = opened(device_name)
    timer = device.timer(None)
    with device.lock():
        subjects = make_subjects(device, timer, WANTED, PERCENTS, cache)
        look_s = refine_s / (len(COPIES) * len(REFINED) * LOOKS)
        subjects = [
            refined(device, timer, one, REFINED, seconds=look_s, seed=secrets.randbits(48), within=ABOUT, cache=cache)
            if one.name in COPIES
            else one
            for one in subjects
        ]
    (folder / "plan.json").write_bytes(msgspec.json.format(msgspec.json.encode(subjects)))
    for subject in subjects:
        print(_described(subject, device.facts.arch, cache), file=sys.stderr)
    return 0


def _described(subject: Subject, arch: str, cache: CompileCache) -> str:
    parts = [f"{subject.name}: {subject.duration_ns / 1000:.3f} us, count {subject.count}"]
    if subject.family == "loop":
        (code,) = loop_codes(list(compile_probes([subject.baseline()], arch, cache).values()))
        parts.append(f"{code.executed} instructions per thread")
    parts += [f"+{percent} % -> {ratio - 1:.4%}" for percent, ratio in subject.known.items()]
    return ", ".join(parts)
