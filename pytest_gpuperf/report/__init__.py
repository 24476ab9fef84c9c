"""How a run reads: tables, the message of a failed test, the summary, explanations.

``text`` knows how each figure is written; everything else is made of it.  Nothing here measures or decides.
"""
