"""The pairs, for tests: see ``pages/facts.py``."""

from pages.facts import PAIRS, Pair  # noqa: F401
