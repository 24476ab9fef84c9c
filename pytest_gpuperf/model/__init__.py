"""The nouns: typed, frozen records of evidence and of what is said about it.  Nothing here computes."""

__version__ = "0.1.0"
"""Of this package: the one place where it is written."""
