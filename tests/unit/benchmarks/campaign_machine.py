"""What opens the simulated machine for the GPU campaign, in each of its processes."""

from __future__ import annotations

import simulated_machine

simulated_machine.NS_PER_COUNT["softmax"] = 2.0


def open_device() -> simulated_machine.SimulatedMachine:
    return simulated_machine.SimulatedMachine()
