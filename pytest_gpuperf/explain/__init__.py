"""Causes of what changed in a workload, from its evidence to the lines that people read."""
