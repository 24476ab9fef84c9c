"""Evidence in, judgement out.  Pure functions: no pytest, no GPU, no clock, no files.

``static_verdict`` compares machine code exactly, ``counter_verdict`` counters.  ``time_verdict`` is the front door for
times: it asks ``comparability``, ``noninferiority`` and ``unpaired`` in order.  ``block_decision`` decides paired
blocks, ``error_budget`` shares one error rate among the workloads of a run.

All inference on times is made on the logarithms of round midmeans or of block ratios, never on samples:
the samples of one process say nothing about the next process, so a test on them raises more false alarms
the more samples there are.  Times are nanoseconds; differences are natural logarithms of the ratio
candidate over baseline; tolerances are fractions (0.005 is half a percent).
"""
