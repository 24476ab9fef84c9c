"""Sampling on top of a timer: rounds of one kernel, paired blocks of two.  ``judge`` says what they mean."""
