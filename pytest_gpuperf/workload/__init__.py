"""One workload's way through a test: run, check, count, time, judge.

``measuring`` is the way in and keeps the order.  ``timing`` takes rounds; ``gating`` makes a verdict of them, with
paired blocks where ``rerunning`` finds that the baseline's machine code can be run again; ``confirming`` gives those
that are slower a second process, and ``self_pairs`` are launches paired with themselves.  ``counted`` has the counters
of a workload, ``profiling`` is what happens instead of all this in a process under ncu.
"""
