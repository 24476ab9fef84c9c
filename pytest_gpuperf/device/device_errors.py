"""Exceptions between a compiled kernel and the GPU: one class per kind that a caller may treat differently."""

from __future__ import annotations

from pytest_gpuperf.errors import GpuperfError


class NoDevice(GpuperfError):
    """There is no GPU that can be used.  The message says why, and what to do."""


class DeviceNeeded(Exception):
    """A test without a GPU needs what only a GPU can give.  Ends the test as *static only*."""

    def __init__(self, what: str) -> None:
        """``needs a GPU: <what>``"""
        super().__init__(f"needs a GPU: {what}")


class LaunchError(GpuperfError, ValueError):
    """A launch does not fit its kernel or its device: arguments, grid, block or shared memory."""


class LoadError(GpuperfError, RuntimeError):
    """A cubin cannot be loaded: of another architecture, not the recorded one, or refused by the driver."""


class GpuFault(RuntimeError):
    """A kernel has broken this process's use of the GPU: nothing runs there any more."""


class LockError(GpuperfError, RuntimeError):
    """Another process kept the GPU for longer than this one waits, or the GPU's lock file cannot be used."""


class TimerUnavailable(GpuperfError):
    """A timer, or every timer, does not work here.  The message says why, and what to do."""


class TimerError(GpuperfError):
    """A measurement failed: a sample was lost, has no valid time, or the workload cannot be timed this way."""
