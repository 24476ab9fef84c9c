"""``--update-baselines``: which workloads it takes, their times from fresh processes, and one write at the end."""
