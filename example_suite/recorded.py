"""The committed figures, for tests: see ``pages/facts.py``."""

from pages.facts import Recorded  # noqa: F401
