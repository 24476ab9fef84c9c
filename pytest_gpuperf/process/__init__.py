"""Processes: the children of a run and its signals, a GPU that a kernel broke, git's word, and the last run."""
