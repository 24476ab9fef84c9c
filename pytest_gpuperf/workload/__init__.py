"""One workload's way through a test: run, check, count, time, judge.

``measure`` is the way in and keeps the order.  ``gate`` compares the time with the baseline, ``figures`` the secondary
metrics; what is slower or worse waits for the second process of ``confirm``.
"""
