"""How a test may end other than by what it asserts: early without failing, by the gate's failure, by a misuse."""

from __future__ import annotations

import pytest

from pytest_gpuperf.device.device_errors import DeviceNeeded


class PerformanceRegression(pytest.fail.Exception):  # type: ignore[misc,name-defined]
    """The gate fails the test; the message is the report of what got worse, and no traceback is shown.

    ``@pytest.mark.xfail(raises=PerformanceRegression)`` expects it, and nothing else that may go wrong in the test.
    """

    __module__ = "builtins"  # as of pytest's own failures: messages name it without a path

    def __init__(self, message: str) -> None:
        super().__init__(message, pytrace=False)


class StaticOnly(DeviceNeeded):
    """The test reached its first need for a GPU; its static evidence stands."""


class CheckedOnly(Exception):
    """The test wanted a time in a run that takes none; its checks have passed."""


class CountersMissing(CheckedOnly, LookupError):
    """The test wanted counters in a run that has none of this workload; the message says why and what to do.

    A test that does not catch it ends as *checked only*: a run without counters proves nothing against it.
    """


class DuplicateWorkload(ValueError):
    """One test used a workload name twice."""


class AmbiguousKernel(ValueError):
    """One test has several kernels of one name, and nothing that could be read tells them apart."""


class TestOver(RuntimeError):
    """A kernel or a workload after its test's end, when nothing is judged any more."""

    __test__ = False
