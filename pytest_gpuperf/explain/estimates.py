"""Estimates for explanations: made when they are asked for, out of this run's machine code or the baselines'.

A launch out of the workload's identity saves the warp model a guess of sizes and integers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pytest_gpuperf.baselines.baseline_errors import CubinError
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.compile.warp_model.estimate import KernelCode, Versions, estimates_of
from pytest_gpuperf.compile.warp_model.launch_inputs import KnownLaunch
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.time_record import Identity
from pytest_gpuperf.model.warp_estimate import WarpEstimate

_LAUNCH = re.compile(r"grid=\((\d+), (\d+), (\d+)\) block=\((\d+), (\d+), (\d+)\)")
_INTEGER = re.compile(r"(?:u?int\d+|bool)=(-?\d+|True|False)")
_NUMBER = re.compile(r"([a-z]+)(\d*)=(.+)")
POINTER_BYTES = 8


class VersionPair(NamedTuple):
    """Two versions of a kernel: baseline and candidate, each None where there is none."""

    arch: str
    old: StaticRecord | None
    new: StaticRecord | None
    launches: tuple[KnownLaunch | None, KnownLaunch | None] = (None, None)


class Estimates:
    """Estimates of versions that are compared; a kernel whose machine code is not at hand has none."""

    def __init__(self, store: BaselineStore, cubins: Mapping[str, bytes], cache: CompileCache | None) -> None:
        """``cubins``, by SHA-256, are of this run."""
        self._cubins = cubins
        self._cache = cache
        self._recorded = functools.cache(functools.partial(_recorded, store))
        self._found: dict[Versions, tuple[WarpEstimate | None, ...]] = {}

    def prepare(self, several: Iterable[VersionPair]) -> None:
        """Make the estimates of several kernels together, which takes hardly longer than those of one."""
        versions = {tuple(code for code in self._codes(one) if code is not None): None for one in several}
        new = [one for one in versions if one and one not in self._found]
        try:
            self._found.update(estimates_of(new, self._cache))
        except ToolchainMissing:  # without a disassembler an explanation does without estimates
            self._found.update({one: (None,) * len(one) for one in new})

    def of(self, compared: VersionPair) -> tuple[WarpEstimate | None, WarpEstimate | None]:
        """Estimates that compare: of both as they were launched if that is known of both, else of neither."""
        codes = self._codes(compared)
        known = tuple(code for code in codes if code is not None)
        if known and known not in self._found:
            self.prepare([compared])
        found = dict(zip(known, self._found[known], strict=True)) if known else {}
        old, new = (None if code is None else found[code] for code in codes)
        return old, new

    def _codes(self, compared: VersionPair) -> list[KernelCode | None]:
        codes: list[KernelCode | None] = []
        for record, launch in zip((compared.old, compared.new), compared.launches, strict=True):
            cubin = self._cubins.get(record.cubin) or self._recorded(record.cubin) if record is not None else b""
            codes.append(
                KernelCode(cubin, record.symbol or record.kernel, compared.arch, launch) if record and cubin else None
            )
        return codes


def _recorded(store: BaselineStore, cubin: str) -> bytes:
    """A cubin of the baselines; empty where it cannot be read: who launches it says so, an explanation does without."""
    try:
        return store.cubin(cubin) if cubin else b""
    except CubinError:
        return b""


# --- launches ------------------------------------------------------------------------------------


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
