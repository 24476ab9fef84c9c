"""Arguments of a launch on record, formed again: its own scalars, and the candidate's arrays in the place of its own.

A record names its arguments and holds no contents: it is text of a few known forms, fitted to the parameters of its
kernel as a test's own arguments are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.model.evidence import KernelBinary

_ARRAY = re.compile(r"(?P<kind>\w+\[[\d,]*\](?: order=F)?)(?: align=\d+)?")
"""An array by type, shape and order, or an opaque argument."""
_SCALAR = re.compile(r"(?P<dtype>bool|u?int(?:8|16|32|64)|float(?:16|32|64)|complex(?:64|128))=(?P<value>\S+)")


class RecordedArguments(NamedTuple):
    """One for each parameter of the baseline's kernel: an argument of the candidate's, a number or no address."""

    binary: KernelBinary
    sources: tuple[int | np.generic | None, ...]
    """A Python integer is the position of the candidate's argument."""

    def values(self, launch: Launch) -> tuple[Any, ...]:
        """As the loaded kernel is given them, on the arrays where ``launch`` has them now.  Raises ``LaunchError``."""
        given = [launch.arguments[one] if isinstance(one, int) else one for one in self.sources]
        return launch.values_for(self.binary, given)


def recorded_arguments(binary: KernelBinary, entries: Sequence[str], launch: Launch) -> RecordedArguments:
    """The arguments that ``entries`` of an identity name, for the baseline's kernel.

    Arrays are matched in their order with those of ``launch`` of the same type, shape and order, of which there have
    to be as many.  Raises ``LaunchError`` that names the argument that cannot be formed again.
    """
    recorded, now = _arrays(entries), _arrays(launch.identity().arguments)
    for kind, positions in recorded.items():
        if len(now[kind]) != len(positions):
            raise LaunchError(f"the record names {len(positions)} arrays {kind}, and this launch has {len(now[kind])}")
    found = {old: new for kind in recorded for old, new in zip(recorded[kind], now[kind], strict=True)}
    sources = tuple(found[place] if place in found else _number(place, entry) for place, entry in enumerate(entries))
    formed = RecordedArguments(binary, sources)
    formed.values(launch)  # raises for what does not fit the kernel's parameters
    return formed


def _arrays(entries: Sequence[str]) -> dict[str, list[int]]:
    """Positions of arrays by all that their entries say but the alignment."""
    found: dict[str, list[int]] = defaultdict(list)
    for position, entry in enumerate(entries):
        if match := _ARRAY.fullmatch(entry):
            found[match["kind"]].append(position)
    return found


def _number(place: int, entry: str) -> np.generic | None:
    """A number of the record, or no address."""
    if entry == "null":
        return None
    match = _SCALAR.fullmatch(entry)
    try:
        if match is not None and match["dtype"] == "bool":
            return np.bool_(match["value"] == "True")
        if match is not None:
            return np.dtype(match["dtype"]).type(match["value"])  # type: ignore[no-any-return]
    except (ValueError, OverflowError):
        pass
    raise LaunchError(f"argument {place + 1} was {entry!r}, which the record alone does not form again")
