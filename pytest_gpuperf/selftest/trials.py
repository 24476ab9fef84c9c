"""Comparisons of known truth on one timer: kernels with themselves, and with versions that are slower."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
import time
from collections.abc import Mapping, Sequence

import numpy as np

from pytest_gpuperf.device.interface import Device, Slot, Timer
from pytest_gpuperf.device.launch import Kernel, Launch
from pytest_gpuperf.judge.decision import Comparison, share
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.model.tolerance import PROFILES
from pytest_gpuperf.selftest.kernels import Probe, require_known_difference
from pytest_gpuperf.timing.compare import compare
from pytest_gpuperf.timing.cubin_opponent import BaselineLaunch, CubinOpponent
from pytest_gpuperf.timing.rounds import Clock, Workload, warm_up
from pytest_gpuperf.timing.samples import midmean, valid_samples

LIMITS = PROFILES["tight"]
ALPHA = share(100, 1)
"""Error rate of a verdict: that of a kernel in a run of 100 tests."""
BUDGET_S = 5.0
"""Wall-clock seconds that the gate gives a workload by default."""
PERCENTS = (0, 1, 2)
AIM = 1.07
"""Slower versions are made slower than their name says by this factor: they have to be found."""
HEADROOM = 1.08
"""Counts up to this many times a baseline's are served by its grid and arguments."""
SAMPLES, REPEATS = 30, 20
"""Samples of a slot, and slots, from which a slowdown is known: that of a copy to 0.1 % on an H200."""


@dataclasses.dataclass(frozen=True)
class Version:
    """A kernel that is compared with a baseline."""

    percent: float
    """By which it is slower, or somewhat more; 0: the same code, behind another function."""
    probe: Probe
    ratio: float
    """Its time over the baseline's, as measured; 1 for the same code."""


class Trials:
    """A kernel and its versions on one timer.  The caller holds the GPU's lock.

    Raises what compiling, loading and timing raise, and ``UnknownSlowdown``.
    """

    def __init__(self, device: Device, timer: Timer, baseline: Probe, seed: int) -> None:
        self.device, self.timer, self._baseline = device, timer, baseline
        self._form = baseline.family.form(device, math.ceil(baseline.count * HEADROOM))
        self._seeds = random.Random(seed)
        self._binaries: dict[Probe, KernelBinary] = {}
        (self.duration_ns,) = self._times_ns(baseline.count)
        self.versions = [self._version(percent) for percent in PERCENTS]

    def compared(self, seconds: float, clock: Clock = time.perf_counter) -> Mapping[Version, Sequence[Comparison]]:
        """Comparisons of the versions, in turns until so many seconds are over, and at least one of each."""
        start = clock()
        taken: dict[Version, list[Comparison]] = {version: [] for version in self.versions}
        for version in itertools.cycle(self.versions):
            if taken[version] and clock() - start >= seconds:
                break
            taken[version].append(self._compared(version))
        return taken

    def _compared(self, version: Version) -> Comparison:
        """One comparison, as the gate takes it."""
        launch, baseline = self._launch(version.probe), BaselineLaunch(self._binary(self._baseline))
        opponent = CubinOpponent(self.device, self.timer, launch, baseline)
        duration_ns, seed = self.duration_ns * version.ratio, self._seeds.getrandbits(48)
        return compare(
            self.device, opponent, LIMITS, ALPHA, seed=seed, duration_ns=duration_ns, budget_s=BUDGET_S
        ).comparison  # fmt: skip

    def _version(self, percent: float) -> Version:
        """Resized once: a kernel's time has a fixed part, and that of a copy is no straight line of its count."""
        count, wanted = self._baseline.count, AIM * percent / 100
        added, ratio, counts = 0, 1.0, float(count)  # so many counts take the baseline's time
        for _ in range(2 if percent else 0):
            added = min(math.ceil(wanted * counts), math.ceil(count * (HEADROOM - 1)))
            before, after = self._times_ns(count, count + added)
            ratio = after / before
            counts = added / max(ratio - 1, wanted / 4)
        probe = dataclasses.replace(self._baseline, count=count + added, moved=True)
        require_known_difference(self._binary(self._baseline), self._binary(probe), added)
        return Version(percent, probe, ratio)

    def _times_ns(self, *counts: int) -> list[float]:
        """Midmean times of kernels, interleaved, with a cold L2."""
        launches = [self._launch(dataclasses.replace(self._baseline, count=count)) for count in counts]
        for launch in launches:
            warm_up(self.timer, Workload(launch), bound_s=0.05)
        taken = [self.timer.measure([Slot(one, SAMPLES) for one in launches], "cold") for _ in range(REPEATS)]
        return [midmean(valid_samples(np.concatenate(of_one).tolist())) for of_one in zip(*taken, strict=True)]

    def _launch(self, probe: Probe) -> Launch:
        arch, (grid, arguments) = self.device.facts.arch, self._form
        kernel = Kernel({arch: self._binary(probe)}, device=self.device, native=arch, ptx=lambda _arch: "")
        return kernel.launch(grid, probe.family.threads, arguments)

    def _binary(self, probe: Probe) -> KernelBinary:
        if probe not in self._binaries:
            self._binaries[probe] = probe.compiled(self.device.facts.arch)
        return self._binaries[probe]
