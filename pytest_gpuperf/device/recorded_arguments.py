"""Arguments of a launch on record, formed again: its own scalars, and the candidate's arrays in the place of its own.

A record names its arguments and holds no contents.  It may come from anybody: what it says is parsed as text of a few
known forms, and fitted to the parameters of its kernel as a test's own arguments are.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.model.evidence import KernelBinary

MOST_CHARACTERS = 400
"""Of an entry; longer ones are no array, structure or number of ours."""
_ARRAY = re.compile(r"(?P<kind>\w+\[[\d,]*\](?: order=F)?)(?: align=\d+)?")
_DESCRIBED = re.compile(r"(?P<kind>opaque\[\d+\]|(?:CArray|CIndexer) .+?)(?: align=\d+)?")
_SCALAR = re.compile(r"(?P<dtype>bool|u?int(?:8|16|32|64)|float(?:16|32|64)|complex(?:64|128))=(?P<value>\S+)")
_TRUTHS = {"True": True, "False": False}


class OwnArgument(NamedTuple):
    """An argument of the candidate's launch, by its position."""

    position: int


@dataclasses.dataclass(frozen=True)
class RecordedArguments:
    """One for each parameter of the baseline's kernel: an array of the candidate's, a number or no address."""

    binary: KernelBinary
    sources: tuple[OwnArgument | np.generic | None, ...]

    def values(self, launch: Launch) -> tuple[Any, ...]:
        """As the loaded kernel is given them, on the arrays where ``launch`` has them now.  Raises ``LaunchError``."""
        given = [launch.arguments[one.position] if isinstance(one, OwnArgument) else one for one in self.sources]
        return launch.values_for(self.binary, given)


def recorded_arguments(binary: KernelBinary, entries: Sequence[str], launch: Launch) -> RecordedArguments:
    """The arguments that ``entries`` of an identity name, for the baseline's kernel.

    Arrays are matched in their order with those of ``launch`` of the same type, shape and order, of which there have
    to be as many.  Raises ``LaunchError`` that names the argument that cannot be formed again.
    """
    if len(entries) != len(binary.parameters):
        taken = len(binary.parameters)
        raise LaunchError(f"the record names {len(entries)} arguments, and its kernel takes {taken}")
    recorded, now = _arrays(entries), _arrays(launch.identity().arguments)
    for kind, positions in recorded.items():
        if len(now[kind]) != len(positions):
            raise LaunchError(f"the record names {len(positions)} arrays {kind}, and this launch has {len(now[kind])}")
    found = {old: OwnArgument(new) for kind in recorded for old, new in zip(recorded[kind], now[kind], strict=True)}
    sources = tuple(found.get(number) or _source(number, entry) for number, entry in enumerate(entries))
    formed = RecordedArguments(binary, sources)
    formed.values(launch)  # raises for what does not fit the kernel's parameters
    return formed


def _arrays(entries: Sequence[str]) -> dict[str, list[int]]:
    """Positions of arrays by type, shape and order, and of structures by all that their entries say."""
    found: dict[str, list[int]] = defaultdict(list)
    for position, entry in enumerate(entries):
        match = _ARRAY.fullmatch(entry) or _DESCRIBED.fullmatch(entry) if len(entry) <= MOST_CHARACTERS else None
        if match:
            found[match["kind"]].append(position)
    return found


def _source(number: int, entry: str) -> np.generic | None:
    """A number of the record, or no address."""
    if entry == "null":
        return None
    match = _SCALAR.fullmatch(entry) if len(entry) <= MOST_CHARACTERS else None
    if match is None:
        raise LaunchError(f"argument {number + 1} was {entry[:MOST_CHARACTERS]!r}, of which the record has no contents")
    try:
        return _scalar(np.dtype(match["dtype"]), match["value"])
    except (ValueError, OverflowError, KeyError):
        raise LaunchError(f"argument {number + 1} was {entry!r}, which is no such number") from None


def _scalar(dtype: np.dtype[Any], text: str) -> np.generic:
    """Raises ``ValueError``, ``OverflowError`` or ``KeyError`` for text that is no value of this type."""
    if dtype.kind == "b":
        return np.bool_(_TRUTHS[text])
    if dtype.kind in "iu":
        value = int(text)
        if not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            raise OverflowError(text)
        return dtype.type(value)  # type: ignore[no-any-return]
    return dtype.type(complex(text) if dtype.kind == "c" else float(text))  # type: ignore[no-any-return]
