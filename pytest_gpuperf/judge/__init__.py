"""Evidence in, judgement out.  Pure functions: no pytest, no GPU, no clock, no files.

``time_verdict`` is the front door for times, ``decision`` what blocks prove, ``static_verdict`` that for machine code.

All inference on times is made on the logarithms of block ratios, never on samples: those of one process say nothing
about the next, so a test on them raises more false alarms the more there are.  Times are nanoseconds; differences are
natural logarithms of candidate over baseline; tolerances are fractions (0.005 is 0.5 %).
"""
