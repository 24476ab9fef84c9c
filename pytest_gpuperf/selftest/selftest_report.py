"""Results of the self-test as one record: the JSON of ``gpuperf selftest --json``."""

from __future__ import annotations

from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.timer_names import TimerName
from pytest_gpuperf.selftest.detectable import Detectable
from pytest_gpuperf.selftest.noise import KernelNoise
from pytest_gpuperf.selftest.symmetry import Symmetry
from pytest_gpuperf.timing.machine_profile import MachineProfile

SCHEMA = 1


class TimerReport(Record, frozen=True):
    """One timer, as it calibrated itself here."""

    name: TimerName
    tick_ns: float = 0.0
    overhead_ns: float = 0.0
    """Reading of a sample of an empty kernel beyond the kernel's own time."""
    unavailable: str = ""
    """Reason why it does not work here; empty if it does."""


def bounds_of(ratio: float, error: float) -> tuple[float, float]:
    """A ratio less and more two relative standard errors."""
    return ratio * (1 - 2 * error), ratio * (1 + 2 * error)


class Control(Record, frozen=True):
    """Verdicts on one kernel at one true slowdown and one tolerance, each by a first process."""

    kernel: str
    duration_ns: float
    percent: float
    """Slowdown asked for; 0: the same machine code in another module."""
    ratio: float
    """True ratio to the baseline: from executed instructions for loops, from pairing by the timer for copies."""
    ratio_se: float
    """Standard error of that, relative; 0 where it follows from counts of instructions."""
    instructions: tuple[int, int] | None
    """Executed per thread by baseline and candidate, counted from the machine code; None for a copy."""
    tolerance: float
    verdicts: int
    slower: int
    faster: int
    passed: int
    """Proven not slower."""
    inconclusive: int
    covered: int
    """Intervals that hold the true ratio, or come within two of its standard errors."""
    intervals: int
    blocks: float
    """Median per verdict."""
    seconds: float
    """Median wall-clock time per verdict, loading and pilot included."""

    @property
    def must_be_slower(self) -> bool:
        """A gate that promises to find twice the tolerance has to find this, as far as the truth is known."""
        return bounds_of(self.ratio, self.ratio_se)[0] - 1 >= 2 * self.tolerance * 0.995

    @property
    def must_pass(self) -> bool:
        """Within the tolerance, as far as the truth is known: SLOWER would be a false alarm."""
        return bounds_of(self.ratio, self.ratio_se)[1] - 1 <= self.tolerance


class SelftestReport(Record, frozen=True):
    schema: int
    gpu: str
    uuid: str
    driver: str
    timer: TimerName
    timers: tuple[TimerReport, ...]
    processes: int
    noise: tuple[KernelNoise, ...]
    symmetry: tuple[Symmetry, ...]
    controls: tuple[Control, ...]
    detectable: tuple[Detectable, ...]
    profile: MachineProfile
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def false_alarms(self) -> int:
        """SLOWER for kernels that are not slower than the tolerance, and FASTER for kernels paired with themselves."""
        slower = sum(control.slower for control in self.controls if control.must_pass)
        return slower + sum(control.faster for control in self.controls if control.percent == 0)

    @property
    def acquittals(self) -> int:
        """Verdicts that could have been false alarms."""
        return sum(control.verdicts for control in self.controls if control.must_pass)
