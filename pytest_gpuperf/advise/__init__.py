"""Differences of evidence to causes: what made a kernel slower, and what to do about it.  Pure."""
