"""Inputs made anew for every run from a seeded factory, and copied into the arrays that the workload reads.

The addresses stay, so that a captured graph and a launch read what is there; the contents never come twice.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_gpuperf.config.call_arguments import BadArgument
from pytest_gpuperf.device.arguments import array_facts
from pytest_gpuperf.device.arrays import stream_of
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.device.plain_arrays import PlainArrays

MOST_SEEDS = 10**9
"""That ``--gpuperf-seed`` takes."""
SEED_BITS = 31
"""Of what a factory is given: every library's generator takes it."""
Factory = Callable[[int], Any]


class Seeds:
    """Seeds for one workload's runs: not to be foreseen by a kernel, and the same again from the same base."""

    def __init__(self, base: int | None) -> None:
        """``base`` is what ``--gpuperf-seed`` says; None: drawn by the operating system."""
        self.base = secrets.randbelow(MOST_SEEDS) if base is None else base

    def __getitem__(self, number: int) -> int:
        return stream_of(stream_of(self.base) + number) >> (64 - SEED_BITS)


class FreshInputs:
    """The arrays that a workload reads, and the factory that fills them."""

    def __init__(self, name: str, factory: Factory, arrays: PlainArrays, targets: Mapping[Any, Any] | None) -> None:
        """``targets`` are a launch's arrays by where a factory's go; None: a callable gets the first ones."""
        self._name, self._factory, self._arrays = name, factory, arrays
        self._targets = targets
        self._made: dict[Any, Any] = {}
        self.seed = -1
        """Of what was made last."""

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What a callable is given."""
        return tuple((self._targets or {}).values())

    @property
    def made(self) -> tuple[Any, ...]:
        """What the factory made last: no kernel has had its hands on it."""
        return tuple(self._made.values())

    def make(self, seed: int) -> None:
        """Have the factory make inputs.  Raises ``BadArgument`` if they are not what the workload reads."""
        given = self._factory(seed)
        made = dict(given) if isinstance(given, Mapping) else dict(enumerate(_as_tuple(given)))
        if self._targets is None:
            self._targets = {key: self._arrays.copy(self._array(key, one)) for key, one in made.items()}
        elif made.keys() != self._targets.keys() and not isinstance(given, Mapping) and len(made) == len(self._targets):
            made = dict(zip(self._targets, made.values(), strict=True))
        if made.keys() != self._targets.keys():
            raise self._refused(
                f"gives {_listed(made)}, and the workload reads {_listed(self._targets)}: give one array for each, in "
                "this order, or a dict"
            )
        for key, target in self._targets.items():
            wanted, found = map(self._arrays.described, (target, self._array(key, made[key])))
            if wanted != found:
                raise self._refused(
                    f"gives {found} for {key!r}, which is {wanted}: give the same library, type and shape"
                )
        self._made, self.seed = made, seed

    def fill(self) -> None:
        """Copy what was made to where the workload reads it."""
        for key, target in (self._targets or {}).items():
            self._arrays.assign(target, self._made[key])

    def require_seeded(self, one: int, other: int) -> None:
        """Raise ``BadArgument`` for a factory that gives other inputs for one seed, or the same for two."""
        kept = []
        for seed in (one, one, other):
            self.make(seed)
            kept.append([self._arrays.copy(array) for array in self.made])
        first, again, different = kept
        if not all(map(self._arrays.equal, first, again)):
            raise self._refused(f"gave two results for seed {one}: let all of it follow from the seed")
        if all(map(self._arrays.equal, first, different)):
            raise self._refused(f"gives the same for the seeds {one} and {other}: let its content follow from the seed")

    def _array(self, key: Any, value: Any) -> Any:
        if self._arrays.is_plain(value):
            return value
        raise self._refused(f"gives {type(value).__name__} for {key!r}: it takes CuPy arrays and PyTorch tensors")

    def _refused(self, what: str) -> BadArgument:
        return BadArgument(f"{self._name}: inputs(seed) {what}")


def read_by(launch: Launch, outputs: Sequence[Any], factory_keys: Sequence[Any] | None) -> dict[Any, Any]:
    """The launch's arrays that a factory fills, by position among its arguments; all but ``outputs``.

    ``factory_keys`` are those of a factory that gives a dict: names of parameters, where the compiler tells them, or
    positions; such may name an output, too, for a kernel that works in place.  Raises ``BadArgument``.
    """
    arguments, parameters = launch.arguments, launch.binary.parameters
    if factory_keys is None:
        return {place: one for place, one in enumerate(arguments) if array_facts(one) and not _is_one_of(one, outputs)}
    places = {parameter.name: place for place, parameter in enumerate(parameters) if parameter.name}
    found = {}
    for key in factory_keys:
        place = places.get(key, key)
        if not isinstance(place, int) or not 0 <= place < len(arguments) or array_facts(arguments[place]) is None:
            known = ", ".join(map(repr, [*places, *range(len(arguments))]))
            raise BadArgument(f"{launch.kernel.name}: inputs(seed) gives {key!r}, which is no array of it: of {known}")
        found[key] = arguments[place]
    return found


def _is_one_of(array: Any, arrays: Sequence[Any]) -> bool:
    return any(array is one for one in arrays)


def _as_tuple(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, tuple | list) else (given,)


def _listed(names: Mapping[Any, Any]) -> str:
    return ", ".join(map(repr, names)) or "nothing"
