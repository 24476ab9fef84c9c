"""The ways in which a test may stop early without failing."""

from __future__ import annotations

from pytest_gpuperf.device.device_errors import DeviceNeeded


class StaticOnly(DeviceNeeded):
    """The test reached its first need for a GPU; its static evidence stands."""


class CheckedOnly(Exception):
    """The test wanted a time in a run that takes none; its checks have passed."""


class CountersMissing(CheckedOnly, LookupError):
    """The test wanted counters in a run that has none of this workload; the message says why and what to do.

    A test that does not catch it ends as *checked only*: a run without counters proves nothing against it.
    """
