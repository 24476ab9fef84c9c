"""Names under which kernels of fixtures are on record, in the place of a test's: ``fixture kernels[fast]``."""

from __future__ import annotations

from collections.abc import Sequence

_WORD = "fixture "
"""No test has it: a Python name holds no space."""


def fixture_test(name: str, labels: Sequence[str] = (), inside: str = "") -> str:
    """``TestPadded::fixture kernels[fast-32]``: the part of a key that a test's name has otherwise.

    ``labels`` are the parameters that it depends on, ``inside`` the class that it lives as long as.
    """
    return f"{inside}{inside and '::'}{_WORD}{name}" + (f"[{'-'.join(labels)}]" if labels else "")


def fixture_of(test: str) -> str:
    """The fixture's name in such a ``test``; empty for a test's."""
    last = test.partition("[")[0].rpartition("::")[2]
    return last.removeprefix(_WORD) if last.startswith(_WORD) else ""
