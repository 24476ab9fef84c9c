"""What a kernel can be slow of: every cause that ``advise`` may name, out of ``causes.json``.

Where remedies and examples come from is in ``docs/explanation/why-slower.md``.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from pytest_gpuperf.model.evidence import Record


class Cause(Record, frozen=True):
    """One way of being slow, in the words of the field."""

    key: str
    """Its name in messages, in the list of pairs, in tables."""
    says: str
    """One sentence: what the kernel does."""
    remedy: str
    """One sentence: what to do."""
    family: str
    """The family of the example suite that shows it: ``kernels/<family>.cu``."""
    in_python: str = ""
    """The remedy for a kernel written in Python, where that of C++ does not do."""


BY_KEY = {
    cause.key: cause
    for cause in msgspec.json.decode(Path(__file__).with_name("causes.json").read_bytes(), type=tuple[Cause, ...])
}
