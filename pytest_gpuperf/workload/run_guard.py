"""A workload that is not trusted: what goes with each of its runs, and which of the timed ones are looked at.

Before every run, timed or not, its outputs are poisoned and its inputs are others.  Of a batch of samples one is drawn
at random, and a copy of its result is taken on the measured stream, directly behind it.  So what is checked is what was
timed, and no run can know whether it will be.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_gpuperf.config.call_arguments import BadArgument
from pytest_gpuperf.device.plain_arrays import NotPlain, PlainArrays
from pytest_gpuperf.workload.fresh_inputs import FreshInputs, Seeds


class Result(NamedTuple):
    """A copy of what a run left."""

    value: Any
    """What a callable returned, else its outputs: one array, or a tuple of them."""
    outputs: tuple[Any, ...]
    """Copies of the arrays that ``outputs=`` names."""


class RunGuard:
    """The guard of one workload, in one process."""

    def __init__(
        self, name: str, arrays: PlainArrays, seeds: Seeds, inputs: FreshInputs | None, outputs: Sequence[Any],
        reset: Callable[[], Any] | None,
    ) -> None:  # fmt: skip
        """``reset`` is the test's own."""
        self.name = name
        self.arrays = arrays
        self.seeds = seeds
        self.runs = 0
        """Seeds used so far."""
        self.prepare_ns = 0.0
        """What preparing a run takes, by the host's clock."""
        self.coin = random.Random(f"samples {seeds.base}")
        """Draws which samples are looked at."""
        self.tried = False
        """Whether the check has shown that it refuses what is wrong."""
        self._inputs = inputs
        self._outputs = tuple(outputs)
        self._reset = reset

    def prepare(self, number: int) -> None:
        """Have the inputs of a run made, which may take the host long."""
        if self._inputs is not None:
            self._inputs.make(self.seeds[number])

    def arm(self) -> None:
        """Poison the outputs, and put the inputs where the workload reads them."""
        for array in self._outputs:
            self.arrays.poison(array)
        if self._inputs is not None:
            self._inputs.fill()
        if self._reset is not None:
            self._reset()

    def reset(self) -> None:
        """All that comes before a run; a timer's slots that have it are the workload's own."""
        began = time.perf_counter()
        self.prepare(self.runs)
        self.runs += 1
        self.arm()
        self.prepare_ns = 1e9 * (time.perf_counter() - began)

    def reset_baseline(self) -> None:
        """The same, for the baseline's slots beside them: its results are not looked at."""
        self.reset()

    def result(self, returned: Any) -> Result:
        """A copy of a run's result, enqueued.  Raises ``NotPlain``, and ``BadArgument`` if there is nothing to see."""
        outputs = tuple(map(self.arrays.copy, self._outputs))
        if returned is not None:
            return Result(self.arrays.map(returned, self._copy_of_returned), outputs)
        if not outputs:
            raise BadArgument(
                f"{self.name} returns nothing, and outputs= names nothing: name the arrays that it writes in outputs="
            )
        return Result(outputs if len(outputs) > 1 else outputs[0], outputs)

    def show(self, number: int, result: Result) -> Mapping[str, Any]:
        """What a check may ask for; and the arrays of the test hold the inputs of this run and its result again."""
        self.prepare(number)
        if self._inputs is not None:
            self._inputs.fill()
        for array, copy in zip(self._outputs, result.outputs, strict=True):
            self.arrays.assign(array, copy)
        inputs = self._inputs.made if self._inputs is not None else ()
        return {"result": result.value, "inputs": inputs, "seed": self.seeds[number]}

    def is_complete(self, returned: Any, result: Result) -> bool:
        """Whether what is there when all streams are done is what was there when the workload's own was."""
        return self.arrays.same(self.result(returned), result)

    @property
    def said_of_inputs(self) -> str:
        """How a run is repeated, for messages."""
        return f"--gpuperf-seed={self.seeds.base} repeats its inputs" if self._inputs is not None else ""

    def _copy_of_returned(self, array: Any) -> Any:
        read = self._inputs.arguments if self._inputs is not None else ()
        named = any(array is one for one in self._outputs)
        if not named and any(self.arrays.overlap(array, one) for one in read):
            raise NotPlain("one of its inputs, or a part of it")
        return self.arrays.copy(array)
