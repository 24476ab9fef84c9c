"""Committed evidence: baseline files with the store of their cubins (``docs/explanation/baselines.md``)."""
