"""What the checklist of the chapter says that a change is worth, and where the suite measures it.

From the "Optimization" chapter of a CUDA course.  Its thresholds for counters are looked at by the families that have
a kernel on either side of them.
"""

PROMISES = ("CHK-01", "CHK-02", "CHK-03", "CHK-04", "CHK-05", "CHK-06", "CHK-07", "CHK-08", "CHK-09", "CHK-10")


def test_promises_are_measured_by_other_claims(claim):
    for promise in PROMISES:
        claim.seen_elsewhere(promise)
