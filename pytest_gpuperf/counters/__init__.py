"""Hardware counters: which there are, how Nsight Compute is made to count them, and what its reports say.

``catalogue`` is the table of metrics and ``chips`` their names elsewhere; ``collecting`` runs ``ncu`` over a set of
tests and reads what it left.  Nothing here judges or knows pytest: the tests to profile are a command line.
"""
