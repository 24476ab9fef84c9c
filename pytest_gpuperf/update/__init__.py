"""``--update-baselines``: which workloads of the run it takes, and one write at the end."""
