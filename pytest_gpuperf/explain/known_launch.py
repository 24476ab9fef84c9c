"""The launch of a workload out of its identity, so that the warp model need not guess sizes and integers."""

from __future__ import annotations

import re

from pytest_gpuperf.compile.warp_model.launch_inputs import KnownLaunch
from pytest_gpuperf.model.time_record import Identity

_LAUNCH = re.compile(r"grid=\((\d+), (\d+), (\d+)\) block=\((\d+), (\d+), (\d+)\)")
_INTEGER = re.compile(r"(?:u?int\d+|bool)=(-?\d+|True|False)")
_NUMBER = re.compile(r"([a-z]+)(\d*)=(.+)")
POINTER_BYTES = 8


def known_launch(identity: Identity | None) -> KnownLaunch | None:
    """Sizes and integers of the launch; None for a callable, and where nothing was launched."""
    found = _LAUNCH.match(identity.launch) if identity is not None else None
    if identity is None or found is None:
        return None
    sizes = [int(number) for number in found.groups()]
    grid, block = (sizes[0], sizes[1], sizes[2]), (sizes[3], sizes[4], sizes[5])
    return KnownLaunch(grid, block, tuple(map(_integer, identity.arguments)), tuple(map(_size, identity.arguments)))


def _integer(entry: str) -> int | None:
    if entry == "null":
        return 0
    found = _INTEGER.fullmatch(entry)
    if found is None:
        return None
    return int(found[1] == "True") if found[1] in ("True", "False") else int(found[1])


def _size(entry: str) -> int:
    """Bytes of the parameter that this was given for; 0 where the entry does not tell."""
    number = _NUMBER.match(entry)
    if number is None:
        return POINTER_BYTES
    if number[3].startswith("0x"):
        return (len(number[3]) - 2) // 2
    return 1 if number[1] == "bool" else int(number[2] or 0) // 8
