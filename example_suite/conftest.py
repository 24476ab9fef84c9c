"""Fixtures of the example suite."""

from __future__ import annotations

import pytest
from claims import ClaimChecker


@pytest.fixture
def claim(request: pytest.FixtureRequest) -> ClaimChecker:
    """Check a document's claim by its id, and put the outcome on record in the test's ``user_properties``."""

    def record(name: str, value: object) -> None:
        # pytest's own record_property warns wherever the JUnit family is not an old one.
        request.node.user_properties.append((name, value))

    return ClaimChecker(record, lambda: str(request.getfixturevalue("gpu").slug))
