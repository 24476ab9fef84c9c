"""``gpuperf selftest``: what this machine's GPU can gate, found by kernels whose slowdown is known."""
