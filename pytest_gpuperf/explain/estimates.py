"""Estimates for explanations: made when they are asked for, out of this run's machine code or the baselines'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_gpuperf.baselines.baseline_errors import CubinError
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.compile.warp_model.estimate import KernelCode, estimates_of
from pytest_gpuperf.compile.warp_model.launch_inputs import KnownLaunch
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.warp_estimate import WarpEstimate


class Estimates:
    """Estimates by architecture and record; a kernel whose machine code is not at hand, or another's, has none."""

    def __init__(self, store: BaselineStore, cubins: Mapping[str, bytes], cache: CompileCache | None) -> None:
        """``cubins``, by SHA-256, are of this run."""
        self._store = store
        self._cubins = cubins
        self._cache = cache
        self._found: dict[KernelCode, WarpEstimate | None] = {}
        self._read: dict[str, bytes | None] = {}
        """Cubins of the baselines that were read by now."""

    def prepare(self, wanted: Iterable[tuple[str, StaticRecord | None, KnownLaunch | None]]) -> None:
        """Make the estimates of several kernels together, which takes hardly longer than those of one."""
        codes = [code for arch, record, launch in wanted if (code := self._code(arch, record, launch)) is not None]
        new = [code for code in codes if code not in self._found]
        try:
            self._found.update(estimates_of(new, self._cache))
        except ToolchainMissing:  # without a disassembler an explanation does without estimates
            self._found.update(dict.fromkeys(new))

    def of(self, arch: str, record: StaticRecord | None, launch: KnownLaunch | None = None) -> WarpEstimate | None:
        """The estimate of one kernel, as it was launched if that is known; None where there is none."""
        code = self._code(arch, record, launch)
        if code is not None and code not in self._found:
            self.prepare([(arch, record, launch)])
        return None if code is None else self._found[code]

    def of_both(
        self,
        arch: str,
        old: StaticRecord | None,
        new: StaticRecord | None,
        launches: tuple[KnownLaunch | None, KnownLaunch | None],
    ) -> tuple[WarpEstimate | None, WarpEstimate | None]:
        """Estimates of two versions that compare: as they were launched if that is known of both, else of neither."""
        found = self.of(arch, old, launches[0]), self.of(arch, new, launches[1])
        if None in launches or all(one is not None and one.launched for one in found):
            return found
        return self.of(arch, old), self.of(arch, new)

    def _code(self, arch: str, record: StaticRecord | None, launch: KnownLaunch | None) -> KernelCode | None:
        if record is None or not record.cubin:
            return None
        cubin = self._cubins.get(record.cubin) or self._recorded(record.cubin)
        if cubin is None:
            return None
        return KernelCode(cubin, record.symbol or record.kernel, arch, launch, record.profile.code_hash)

    def _recorded(self, cubin: str) -> bytes | None:
        if cubin not in self._read:
            try:
                self._read[cubin] = self._store.cubin(cubin)
            except CubinError:  # who launches it says so; an explanation does without
                self._read[cubin] = None
        return self._read[cubin]
