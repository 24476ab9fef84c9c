"""Fixtures of the example suite."""

from __future__ import annotations

import pytest
from claims import ClaimChecker, Record


@pytest.fixture
def claim(request: pytest.FixtureRequest, record_property: Record) -> ClaimChecker:
    """Check a document's claim by its id, and put the outcome on record."""
    return ClaimChecker(record_property, lambda: str(request.getfixturevalue("gpu").slug))
