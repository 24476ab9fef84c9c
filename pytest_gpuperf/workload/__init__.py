"""One workload's way through a test: run, check, count, time, judge.

``measure`` is the way in and keeps the order.  What is timed depends on the process: ``gate_time``, ``record_time`` or
``confirm_time``, of the steps in ``timed_rounds``; under ncu all there is is ``counter_evidence.profile``.
"""
