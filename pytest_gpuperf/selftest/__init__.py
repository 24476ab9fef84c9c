"""``gpuperf selftest``: measures what this machine's GPU can gate.

Kernels whose true slowdown is known are sent through the very procedure that gates a test.  ``run`` is the way in.
"""
