"""Committed evidence: baseline files with the store of their cubins.

``docs/explanation/baselines.md`` describes the format.  Nothing here measures, judges or decides what to accept.
"""
