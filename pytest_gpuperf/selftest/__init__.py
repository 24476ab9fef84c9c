"""``gpuperf selftest``: what this machine's GPU can gate, found out on the GPU itself.

Kernels whose true slowdown is known are sent through the very procedure that gates a test.  ``run`` is the way
in; ``profile`` keeps what the gate's screen uses later.  No pytest in here.
"""
