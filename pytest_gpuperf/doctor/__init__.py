"""Examination of a machine: what it can measure, what is missing, what to do.

Nothing here needs more than the standard library, so the doctor can be asked on a machine where nothing else works.
It changes nothing and leaves the GPU alone.
"""
