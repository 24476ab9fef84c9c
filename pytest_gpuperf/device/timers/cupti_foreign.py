"""Check that nothing ran on the GPU but the samples and what goes with them: other threads are not timed.

A sample's calls carry its tag, and those that prepare a guarded sample carry ``OURS``.  What carries none was launched
by another thread of the process, or is a flush of the L2, which is a memset.
"""

from __future__ import annotations

from pytest_gpuperf.device.timers.cupti_activities import MEMSET, ActivitySource
from pytest_gpuperf.device.timers.timer_errors import TimerError

OURS = 0
"""Tag of what prepares a sample or looks at its result; samples are numbered from 1."""


def refuse_work_of_others(source: ActivitySource, flushes: int) -> None:
    """Raise ``TimerError`` if there is work without a tag besides so many ``flushes``."""
    untagged = [one.name for one in source.activities if one.correlation not in source.tags]
    others = [name for name in untagged if name != MEMSET]
    if untagged.count(MEMSET) > flushes:
        others.append(MEMSET)
    if others:
        raise TimerError(
            f"{others[0]!r} ran on the GPU during the measurement, and this thread did not launch it: what other "
            "threads of the process do is not timed. Launch all of the workload from the function that is measured, "
            "and end threads of the test that use the GPU"
        )
