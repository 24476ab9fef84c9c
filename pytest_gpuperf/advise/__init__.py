"""Differences of evidence to causes: what made a kernel slower, and what to do about it.

Pure: static figures, counters, times and launches of before and after go in; causes in the words of the field come out,
the likeliest gain first.  Nothing here measures, judges or prints, and nothing is advised where nothing differs.
"""
