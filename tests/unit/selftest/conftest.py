"""The simulated machine."""

from __future__ import annotations

import pytest
from simulated_machine import SimulatedMachine


@pytest.fixture
def machine() -> SimulatedMachine:
    return SimulatedMachine(seed=1)
