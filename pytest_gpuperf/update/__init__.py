"""``--update-baselines``: which workloads it takes, their times from fresh processes, and one write at the end.

``choosing`` decides, ``recording`` runs the processes, ``accepting`` puts both together and writes.
"""
