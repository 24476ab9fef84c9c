"""Inputs made anew from a seed before every run, in the arrays that the workload reads; and outputs that hold poison.

The addresses stay, so a launch and a captured graph read the new content.  Arrays are CuPy's, NumPy's in simulations,
or PyTorch's tensors.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_gpuperf.config.call_arguments import BadArgument
from pytest_gpuperf.device.arguments import array_facts
from pytest_gpuperf.device.arrays import POISON, stream_of
from pytest_gpuperf.device.launch import Launch

SEED_BITS = 31
"""Of what a factory is given: every library's generator takes it."""


class FreshInputs:
    """The arrays that a workload reads, and the factory that fills them; run by run with the same seeds everywhere."""

    def __init__(self, name: str, factory: Callable[[int], Any], launch: Launch | None, outputs: Sequence[Any]) -> None:
        """Without a ``launch`` it is a callable, which gets arrays like the factory's first.

        Raises ``BadArgument`` for a factory that gives no arrays, others than the launch reads, or always the same.
        """
        self._name, self._factory = name, factory
        self._seeds = (stream_of(number) >> (64 - SEED_BITS) for number in itertools.count())
        self._targets: dict[Any, Any] = {}
        self._make()
        self._targets = first = {key: _copy(array) for key, array in self._made.items()}
        if launch is not None:
            self._targets = _arrays_read_by(launch, outputs, first if self._by_name else None)
        self._make()
        if all(map(_equal, first.values(), self._made.values())):
            raise self._refused("gives the same for two seeds: let its content follow from the seed")

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What a callable is given."""
        return tuple(self._targets.values())

    @property
    def made(self) -> tuple[Any, ...]:
        """What the factory made last, which no run has changed."""
        return tuple(self._made.values())

    def renew(self) -> None:
        """Make the next inputs, and enqueue their copy to where the workload reads them.  Raises ``BadArgument``."""
        self._make()
        for key, target in self._targets.items():
            _detached(target)[...] = _detached(self._made[key])

    def _make(self) -> None:
        """Have the factory make inputs of the next seed.  Raises ``BadArgument`` if they do not fit the workload's."""
        self.seed = next(self._seeds)
        given = self._factory(self.seed)
        self._by_name = isinstance(given, Mapping)
        if isinstance(given, Mapping):
            made = dict(given)
        else:
            arrays = given if isinstance(given, tuple | list) else (given,)
            keys = self._targets if len(self._targets) == len(arrays) else range(len(arrays))
            made = dict(zip(keys, arrays, strict=True))
        for key, one in made.items():
            if not (hasattr(one, "shape") and hasattr(one, "dtype")):
                raise self._refused(f"gives {type(one).__name__} for {key!r}: it takes CuPy arrays and PyTorch tensors")
        targets = self._targets or made
        if made.keys() != targets.keys():
            raise self._refused(
                f"gives {_listed(made)}, and the workload reads {_listed(targets)}: give one array for each, in this "
                "order, or a dict"
            )
        for key, target in targets.items():
            wanted, found = _described(target), _described(made[key])
            if wanted != found:
                raise self._refused(
                    f"gives {found} for {key!r}, which is {wanted}: give the same library, type and shape"
                )
        self._made = made

    def _refused(self, why: str) -> BadArgument:
        return BadArgument(f"{self._name}: inputs(seed) {why}")


def _arrays_read_by(launch: Launch, outputs: Sequence[Any], keys: Mapping[Any, Any] | None) -> dict[Any, Any]:
    """The launch's arrays that a factory fills, by position among its arguments; all but ``outputs``.

    ``keys`` are those of a factory that gives a dict: names of parameters, where the compiler tells them, or positions;
    such may name an output, too, for a kernel that works in place.  Raises ``BadArgument``.
    """
    arrays = {place: one for place, one in enumerate(launch.arguments) if array_facts(one)}
    if keys is None:
        return {place: one for place, one in arrays.items() if not any(one is output for output in outputs)}
    places = {parameter.name: place for place, parameter in enumerate(launch.binary.parameters) if parameter.name}
    for key in keys:
        if places.get(key, key) not in arrays:
            known = ", ".join(map(repr, [*places, *range(len(launch.arguments))]))
            raise BadArgument(f"{launch.kernel.name}: inputs(seed) gives {key!r}, which is no array of it: of {known}")
    return {key: arrays[places.get(key, key)] for key in keys}


def poison(array: Any) -> None:
    """Fill an array as ``gpu.empty`` does: floating-point numbers are NaN then, and whole ones -1."""
    data = _detached(array)
    flat = data.reshape(-1)  # a copy, if there are gaps between its elements
    _bytes(flat)[...] = POISON
    data[...] = flat.reshape(data.shape)


def _bytes(array: Any) -> Any:
    flat = _detached(array).reshape(-1)
    return flat.view(sys.modules["torch"].uint8 if _is_tensor(array) else "uint8")


def _equal(one: Any, other: Any) -> bool:
    """Whether all bytes of two arrays of one type and shape are the same.  Waits."""
    return bool((_bytes(one) == _bytes(other)).all())


def _copy(array: Any) -> Any:
    return array.detach().clone() if _is_tensor(array) else array.copy()


def _detached(array: Any) -> Any:
    """The array; of a tensor one on the same memory that takes part in no gradient."""
    return array.detach() if _is_tensor(array) else array


def _is_tensor(array: Any) -> bool:
    return hasattr(array, "detach")


def _described(array: Any) -> str:
    """``cupy float32[1024,32]``"""
    library = type(array).__module__.partition(".")[0]
    return f"{library} {str(array.dtype).removeprefix('torch.')}[{','.join(map(str, array.shape))}]"


def _listed(names: Mapping[Any, Any]) -> str:
    return ", ".join(map(repr, names)) or "nothing"
