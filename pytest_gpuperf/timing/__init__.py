"""Rounds and paired blocks on top of a timer: how samples are taken and what one batch of them says.

``sample_stats`` and ``health`` are pure functions of samples; ``rounds`` and ``blocks`` drive a device.  Nothing
here judges: a round says how long, ``judge`` says whether that is a regression.
"""
