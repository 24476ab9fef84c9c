"""Evidence in, judgement out: pure functions, without pytest, a GPU, a clock or files.

Times are nanoseconds, differences natural logarithms of candidate over baseline, tolerances fractions (0.005 is 0.5 %).
"""
