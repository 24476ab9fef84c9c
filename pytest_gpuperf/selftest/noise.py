"""Nested noise: how much samples, rounds and processes scatter, and what follows for stored baselines.  Pure.

Analysis of variance with one random factor (Searle, "Variance Components", 1992).  Why processes are the unit:
docs/explanation/statistics.md, "Why not simply compare two medians".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import scipy

from pytest_gpuperf.judge.log_times import log_times
from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.timed_round import Round

CONFIDENCE = 0.9
LEAST_OMEGA = 5e-4
"""A handful of processes within a minute cannot promise less for another day."""
MOST_OMEGA = 0.2
_TINY = 1e-14
"""Variance of block means that no timer gets below: (0.00001 %)^2."""


class KernelNoise(Record, frozen=True):
    """One kernel's scatter at each level: relative standard deviations."""

    kernel: str
    duration_ns: float
    sample_sd: float
    """Standard deviation of single samples in a round, from their interquartile range."""
    rho1: float
    """Lag-1 autocorrelation of samples."""
    round_sd: float
    """Standard deviation of rounds in one process."""
    process_sd: float
    """Standard deviation between processes, less what rounds contribute; 0 if that is all there is."""
    process_means_sd: float
    """Standard deviation of the means of processes, rounds' part included."""


def nested_noise(kernel: str, processes: Sequence[Sequence[Round]]) -> KernelNoise:
    """Noise of one kernel from the rounds that each process took; at least two of each."""
    rounds = [one for process in processes for one in process]
    logs = [log_times([one.midmean for one in process], f"{kernel} rounds") for process in processes]
    within = float(np.mean([np.var(values, ddof=1) for values in logs]))
    of_means = float(np.var([values.mean() for values in logs], ddof=1))
    share = float(np.mean([1 / values.size for values in logs]))
    return KernelNoise(
        kernel=kernel,
        duration_ns=math.exp(float(np.mean([values.mean() for values in logs]))),
        sample_sd=float(np.median([(one.quantiles[3] - one.quantiles[1]) / 1.349 / one.median for one in rounds])),
        rho1=float(np.mean([one.rho1 for one in rounds])),
        round_sd=math.sqrt(within),
        process_sd=math.sqrt(max(0.0, of_means - share * within)),
        process_means_sd=math.sqrt(of_means),
    )


def omega_bound(kernels: Sequence[KernelNoise], processes: int) -> float:
    """Upper 90 % bound of the spread between recordings, all kernels together, the scatter of rounds included."""
    freedom = len(kernels) * (processes - 1)
    variance = float(np.mean([kernel.process_means_sd**2 for kernel in kernels]))
    bound = math.sqrt(variance * freedom / float(scipy.special.chdtri(freedom, CONFIDENCE)))
    return min(max(bound, LEAST_OMEGA), MOST_OMEGA)


def pooled_sd(deviations: Sequence[float]) -> float:
    """One standard deviation for several kernels: root of the mean square."""
    return math.sqrt(float(np.mean(np.square(deviations)))) if len(deviations) else 0.0


class Placement(Record, frozen=True):
    """Scatter of one kernel's log ratio to itself, in another module, from process to process."""

    variance: float
    """Variance of the means of processes."""
    by_blocks: float
    """Part of it that the blocks' own scatter explains."""
    processes: int

    @property
    def excess(self) -> float:
        """Variance that the blocks do not explain; negative by chance where there is none."""
        return self.variance - self.by_blocks

    @property
    def stands_out(self) -> bool:
        """True if processes scatter by more than their blocks explain (chi-squared test at 5 %)."""
        freedom = self.processes - 1
        return self.variance * freedom > self.by_blocks * float(scipy.special.chdtri(freedom, 0.05))


def placement(processes: Sequence[Sequence[float]]) -> Placement:
    """From the block values that each of two or more processes took, two or more in each."""
    values = [np.asarray(of_process) for of_process in processes]
    return Placement(
        variance=float(np.var([one.mean() for one in values], ddof=1)),
        by_blocks=float(np.mean([np.var(one, ddof=1) / one.size for one in values])),
        processes=len(values),
    )


def placement_sds(kernels: Mapping[str, Placement]) -> dict[str, float]:
    """Spread between processes of each kernel: its own where it stands out, else that of all others."""
    others = [one for one in kernels.values() if not one.stands_out]
    # by the inverse of the variance that their estimates have
    weights = [1 / max(one.by_blocks, _TINY) ** 2 for one in others]
    common = float(np.average([one.excess for one in others], weights=weights)) if others else 0.0
    return {name: math.sqrt(max(0.0, one.excess if one.stands_out else common)) for name, one in kernels.items()}
