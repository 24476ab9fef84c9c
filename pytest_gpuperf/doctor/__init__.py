"""Examination of a machine: what it can measure, what is missing, what to do.

It changes nothing and leaves the GPU alone.
"""
