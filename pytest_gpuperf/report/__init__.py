"""Texts of a run: tables, the message of a failed test, the summary, report files.  Nothing here decides."""
