"""A baseline's machine code beside the candidate's, in one process.

Both are loaded into modules of their own and run on the same stream and the same buffers, each in its own grid, block
and shared memory; before each block the buffers move, before every eighth the modules are loaded anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from pytest_gpuperf.device.arguments import Source
from pytest_gpuperf.device.device_errors import GpuFault
from pytest_gpuperf.device.interface import Configuration, Device, Timer
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.model.time_record import CacheMode
from pytest_gpuperf.timing.blocks import Sides
from pytest_gpuperf.timing.moving_buffers import MovingBuffers
from pytest_gpuperf.timing.opponent import RELOAD_EVERY
from pytest_gpuperf.timing.rounds import Workload

OF_BASELINE = " of the baseline"
"""What a kernel's name has behind it where it is the baseline's machine code that runs."""


class BaselineLaunch(NamedTuple):
    """How a baseline's machine code is launched."""

    binary: KernelBinary
    configuration: Configuration | None = None
    """Grid, block and shared memory, where they are not the candidate's."""
    arguments: tuple[Source, ...] | None = None
    """Where they are not the candidate's."""


class CubinOpponent:
    """An ``Opponent``: see the module."""

    def __init__(
        self, device: Device, timer: Timer, launch: Launch, baseline: BaselineLaunch, *,
        reset: Callable[[], Any] | None = None, cache: CacheMode = "cold",
    ) -> None:  # fmt: skip
        """``launch`` is the candidate; with ``reset``, which restores the caller's buffers, these stay where they are.

        The caller holds the GPU's lock.  Raises ``LoadError`` for a cubin that the device refuses, and ``GpuFault`` if
        the baseline breaks the use of the GPU.
        """
        self.timer = timer
        self._device, self._launch, self._baseline = device, launch, baseline
        self._reset, self._cache = reset, cache
        self._buffers, unmoved = MovingBuffers.of(device, launch) if reset is None else (None, "")
        self.remarks = (unmoved,) if unmoved else ()
        self._load(random.Random(0))
        self._form_arguments()
        self._try_baseline()

    @property
    def sides(self) -> Sides:
        return (
            Workload(self._run_baseline, self._reset, self._cache),
            Workload(self._run_candidate, self._reset, self._cache),
        )

    def place(self, call: int, coin: random.Random) -> None:
        if call and call % RELOAD_EVERY == 0:
            self._load(coin)
        if self._buffers is not None:
            self._launch = self._buffers.moved(coin)
            self._form_arguments()

    def leave(self) -> None:
        if self._buffers is None:
            if self._reset is not None:
                self._reset()
            self._run_candidate()
            self._device.synchronize()

    def _load(self, coin: random.Random) -> None:
        """Load both anew, the one or the other first: a place in memory is no side's own."""
        sides = [("baseline", self._baseline.binary), ("candidate", self._launch.binary)]
        coin.shuffle(sides)
        loaded = {side: self._device.load(binary) for side, binary in sides}
        for side, binary in sides:
            self._launch.kernel.variables.fill(loaded[side], binary)
        self._loaded = loaded

    def _form_arguments(self) -> None:
        """The baseline's own arguments are on the arrays where they lie now."""
        own = self._baseline.arguments
        self._values = None if own is None else self._launch.values_for(self._baseline.binary, own)

    def _try_baseline(self) -> None:
        """Run it once by itself: the candidate has run, so what breaks here is not its doing."""
        if self._reset is not None:
            self._reset()
        self._run_baseline()
        fault = self._device.fault()
        if fault:
            raise GpuFault(f"the baseline's machine code faults on what the candidate runs on: {fault}")

    def _run_baseline(self) -> None:
        self._launch.run_with(self._loaded["baseline"], self._baseline.configuration, self._values, whose=OF_BASELINE)

    def _run_candidate(self) -> None:
        self._launch.run_with(self._loaded["candidate"])
