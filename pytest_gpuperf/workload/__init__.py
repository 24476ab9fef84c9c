"""One workload's way through a test: run, check, count, time, judge.

``measure`` is the way in and keeps the order.  What is timed depends on the process: ``gate_time``, ``record_time`` or
``confirm_time``, of the steps in ``timed_rounds``; ``baseline_kernel`` finds whether the baseline's machine code can
be run again, ``explained_verdict`` says what goes with a verdict.  ``second_process`` confirms what is slower, and
``self_pairs`` are launches paired with themselves.  ``counter_evidence`` has the counters of a workload,
``profiled_run`` is what happens instead of all this in a process under ncu.
"""
