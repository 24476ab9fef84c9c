"""Texts of a run: tables, the message of a failed test, the summary, report files.

``formatting`` writes the figures.  Nothing here measures or decides.
"""
