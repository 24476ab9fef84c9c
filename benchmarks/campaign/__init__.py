"""A suite of callables in two revisions, for ``paired_processes.py``."""
