"""Sampling on top of a timer: rounds of one kernel, paired blocks of two.

``sample_stats`` and ``health`` are pure functions of samples; ``rounds`` and ``blocks`` drive a device.  Nothing
here judges: a round says how long, ``judge`` says whether that is a regression.
"""
