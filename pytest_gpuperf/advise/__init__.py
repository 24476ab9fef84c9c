"""Differences of evidence to causes: what made a kernel slower, and what to do about it.

Pure: figures of before and after go in; causes come out, the likeliest gain first.  Nothing here judges or prints.
"""
