"""The simulated machine, findable by child processes too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from simulated_machine import SimulatedMachine

DEVICE = "simulated_machine:open_device"


@pytest.fixture
def machine() -> SimulatedMachine:
    return SimulatedMachine(seed=1)


@pytest.fixture
def simulated_children(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What opens the simulated machine in this process and in children of it."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    monkeypatch.setenv("SIMULATED_MACHINES", str(tmp_path_factory.mktemp("machines")))
    return DEVICE
