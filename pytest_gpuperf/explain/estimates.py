"""Estimates for explanations: made when they are asked for, out of this run's machine code or the baselines'."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pytest_gpuperf.baselines.baseline_errors import CubinError
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.compile.warp_model.estimate import KernelCode, Versions, estimates_of
from pytest_gpuperf.compile.warp_model.launch_inputs import KnownLaunch
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.warp_estimate import WarpEstimate

Launches = tuple[KnownLaunch | None, KnownLaunch | None]
"""Of baseline and candidate."""


class VersionPair(NamedTuple):
    """Two versions of a kernel: baseline and candidate, each None where there is none."""

    arch: str
    old: StaticRecord | None
    new: StaticRecord | None
    launches: Launches = (None, None)


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
        found = iter(self._found[known] if known else ())
        old, new = (None if code is None else next(found) for code in codes)
        return old, new

    def _codes(self, compared: VersionPair) -> tuple[KernelCode | None, KernelCode | None]:
        records = compared.old, compared.new
        old, new = (self._code(compared.arch, *each) for each in zip(records, compared.launches, strict=True))
        return old, new

    def _code(self, arch: str, record: StaticRecord | None, launch: KnownLaunch | None) -> KernelCode | None:
        cubin = self._cubins.get(record.cubin) or self._recorded(record.cubin) if record is not None else b""
        if record is None or not cubin:
            return None
        return KernelCode(cubin, record.symbol or record.kernel, arch, launch)


def _recorded(store: BaselineStore, cubin: str) -> bytes:
    """A cubin of the baselines; empty where it cannot be read: who launches it says so, an explanation does without."""
    try:
        return store.cubin(cubin) if cubin else b""
    except CubinError:
        return b""
