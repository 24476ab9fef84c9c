"""True slowdown of a version where counting instructions does not tell: it is paired with its baseline.

A copy's time is not linear in its size: the line of ``known_slowdowns`` puts a copy of 72 us that is to be 1 % slower
anywhere between 0.5 and 1 % on an H200.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

import msgspec

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.device.interface import Device, Timer
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.selftest.kernels import FAMILIES, compile_probes, launch_of
from pytest_gpuperf.selftest.known_slowdowns import Subject, effect_key
from pytest_gpuperf.timing.paired_run import pair

LOOKS = 3
"""Times that a version is looked at; its size is set again in between."""
AT_LEAST = (1.0, 1.1)
"""A version may be as much slower as its name says, or by a tenth of that more."""
LEAST_BLOCKS = 2
"""Fewest blocks of a look: with fewer, the error of the slowdown is unknown."""
LOOKING = Policy(alpha=1e-300, alpha_faster=1e-300, beta=1e-300, blocks_max=100)
"""Decides nothing, so that all blocks are taken."""


def refined(
    device: Device, timer: Timer, subject: Subject, percents: Sequence[float], *, seconds: float, seed: int,
    within: tuple[float, float] = AT_LEAST, cache: CompileCache | None = None,
) -> Subject:  # fmt: skip
    """``subject`` with its versions that are slower by ``percents`` sized by pairing, for ``seconds`` a look,
    until the effect is ``within`` two multiples of the wanted one.

    Each has the size at which it was looked at last, and the ratio found there, with its standard error; without a look
    of which two blocks count it stays as it is.  The caller holds the GPU's lock.  Raises what compiling and timing
    raise.
    """
    counts, known, errors = dict(subject.counts), dict(subject.known), dict(subject.known_se)
    seeds = random.Random(seed)

    def look(count: int) -> tuple[float, float]:
        return paired_ratio(device, timer, subject, count, cache, seeds.getrandbits(48), seconds)

    for percent in percents:
        key, wanted = effect_key(percent), percent / 100
        count = min(counts[key], subject.capacity)
        for _ in range(LOOKS):
            ratio, error = look(count)
            if math.isnan(ratio):
                break
            found = ratio - 1
            counts[key], known[key], errors[key] = count, ratio, error
            if found <= 0 or within[0] * wanted <= found <= within[1] * wanted:
                break
            added = round((count - subject.count) * sum(within) / 2 * wanted / found)
            count = subject.count + max(1, min(added, subject.capacity - subject.count))
            if count == counts[key]:
                break
    return msgspec.structs.replace(subject, counts=counts, known=known, known_se=errors)


def paired_ratio(
    device: Device, timer: Timer, subject: Subject, count: int, cache: CompileCache | None, seed: int, seconds: float
) -> tuple[float, float]:
    """Ratio of the version of ``count`` to the baseline and its relative standard error; NaN with under two blocks."""
    baseline = subject.baseline()
    version = msgspec.structs.replace(subject, count=count).baseline(surroundings=1)
    binaries = compile_probes([baseline, version], device.facts.arch, cache)
    launch = launch_of(device, binaries[baseline], FAMILIES[subject.family], subject.capacity)
    found = pair(
        device, timer, launch, binaries[baseline], LOOKING, seed=seed,
        candidate=binaries[version], duration_ns=subject.duration_ns, budget_s=seconds,
    )  # fmt: skip
    if len(found.r) < LEAST_BLOCKS:
        return math.nan, math.nan
    return math.exp(statistics.fmean(found.r)), statistics.stdev(found.r) / math.sqrt(len(found.r))
