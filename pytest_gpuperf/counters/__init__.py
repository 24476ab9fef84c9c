"""Hardware counters of a workload, collected with Nsight Compute.

``catalogue`` is the table of metrics and of their names on other chips; ``collect`` runs ``ncu`` over a set of
tests and reads what it left.  Nothing here judges or knows pytest: the tests to profile are a command line.
"""
