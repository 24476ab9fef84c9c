"""One warp's clock: when an instruction issues, what it waits for, and when its results will be there."""

from __future__ import annotations

from pytest_gpuperf.compile.warp_model.decode import Step
from pytest_gpuperf.compile.warp_model.latencies import BARRIER_CYCLES, LATENCY, LATENCY_OF_OPCODE, issue_cycles


class IssueClock:
    """Cycles of a scheduler, as one warp by itself sees them."""

    def __init__(self, arch: str) -> None:
        self._arch = arch
        self._now = 0.0
        self._ready: dict[str, tuple[float, str]] = {}
        """When a result will be there, and the class of what makes it."""
        self._unit_free: dict[str, float] = {}
        self.waited = 0.0
        """Cycles that the last instruction waited for its sources."""
        self.waited_for = ""
        """Class of what it waited for; empty if it did not wait."""

    def advance(self, step: Step) -> float:
        """Wait for sources and for the unit; returns the cycles from the instruction before to this one."""
        ready = self._ready
        latest = (0.0, "")
        for name in step.reads:
            if name in ready and ready[name] > latest:
                latest = ready[name]
        wait, self.waited_for = latest
        start = max(self._now + 1, self._unit_free.get(step.klass, 0.0))
        if step.base == "BAR":
            wait, self.waited_for = start + BARRIER_CYCLES, step.klass
        self.waited = max(wait - start, 0.0)
        start = max(start, wait)
        self._unit_free[step.klass] = start + issue_cycles(step.klass, self._arch)
        done = (start + LATENCY_OF_OPCODE.get(step.base, LATENCY.get(step.klass, 1)), step.klass)
        for name in step.writes:
            ready[name] = done
        cycles, self._now = start - self._now, start
        return cycles
