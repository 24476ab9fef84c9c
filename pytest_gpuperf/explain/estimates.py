"""Estimates for explanations: made when they are asked for, out of this run's machine code or the baselines'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pytest_gpuperf.baselines.baseline_errors import CubinError
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile import ToolchainMissing
from pytest_gpuperf.compile.warp_model import KernelCode, estimates_of
from pytest_gpuperf.model.evidence import StaticRecord

if TYPE_CHECKING:
    from pytest_gpuperf.compile import CompileCache
    from pytest_gpuperf.model.warp_estimate import WarpEstimate


class Estimates:
    """Estimates by architecture and record; a kernel whose machine code is not at hand has none."""

    def __init__(self, store: BaselineStore, cubins: Mapping[str, bytes], cache: CompileCache | None) -> None:
        """``cubins``, by SHA-256, are of this run."""
        self._store = store
        self._cubins = cubins
        self._cache = cache
        self._found: dict[KernelCode, WarpEstimate | None] = {}

    def prepare(self, records: Iterable[tuple[str, StaticRecord | None]]) -> None:
        """Make the estimates of several kernels together, which takes hardly longer than those of one."""
        codes = [code for arch, record in records if (code := self._code(arch, record)) is not None]
        new = [code for code in codes if code not in self._found]
        try:
            self._found.update(estimates_of(new, self._cache))
        except ToolchainMissing:  # without a disassembler an explanation does without estimates
            self._found.update(dict.fromkeys(new))

    def of(self, arch: str, record: StaticRecord | None) -> WarpEstimate | None:
        """The estimate of one kernel; None where there is none."""
        code = self._code(arch, record)
        if code is None:
            return None
        if code not in self._found:
            self.prepare([(arch, record)])
        return self._found[code]

    def _code(self, arch: str, record: StaticRecord | None) -> KernelCode | None:
        cubin = self._cubin(record.cubin) if record is not None and record.cubin else None
        return None if cubin is None or record is None else KernelCode(cubin, record.symbol or record.kernel, arch)

    def _cubin(self, sha256: str) -> bytes | None:
        if sha256 in self._cubins:
            return self._cubins[sha256]
        try:
            return self._store.cubin(sha256)
        except CubinError:  # who launches it says so; an explanation does without
            return None
