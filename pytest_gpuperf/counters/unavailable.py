"""The exception for missing counters: what happened, and what to do about it."""

from __future__ import annotations


class CountersUnavailable(Exception):
    """Counters cannot be collected here and now, for ``reason``; ``remedy`` says what to do.

    ``kind`` is a short name of the reason (``permission``, ``busy``, ``no ncu`` ...), for programs and tests.
    """

    def __init__(self, kind: str, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.kind = kind
        self.reason = reason
        self.remedy = remedy
