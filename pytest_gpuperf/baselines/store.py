"""The baseline folder as one object: lookups for judges, ``write`` for the update."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pytest_gpuperf.baselines import layout, manifest, transaction, working_folder
from pytest_gpuperf.baselines.baseline_errors import BaselineError, CubinError, UnsafePathError, UnwritableEvidenceError
from pytest_gpuperf.baselines.canonical import canonical_bytes
from pytest_gpuperf.baselines.cubin_store import placed, read_cubin
from pytest_gpuperf.baselines.file_types import EvidenceFile, StaticFile, TimeFile
from pytest_gpuperf.baselines.merging import Update, merge_static, merge_time
from pytest_gpuperf.baselines.parsing import MAX_JSON_BYTES, decode, read_bounded
from pytest_gpuperf.baselines.update_lock import Say, silent
from pytest_gpuperf.model.evidence import Key, Session, StaticRecord, TimeRecord

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class StaticLookup:
    """Static evidence of one workload on one architecture."""

    record: StaticRecord | None
    """Evidence of the toolchain asked for."""
    other_toolchains: tuple[str, ...]
    """Toolchains that have the workload too: without a record, they tell NOT-COMPARABLE from NEW."""


class BaselineStore:
    """Reads lazily, each file and the lists of targets and modules once; writes all or nothing per file.

    Every method raises a ``BaselineError`` and nothing else for whatever it finds in the folder.  A missing folder or
    file is no error: there is no baseline.  Not thread-safe; processes exclude each other when they write.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._files: dict[tuple[str, str], EvidenceFile | None] = {}
        self._modules: dict[str, tuple[str, ...]] = {}
        self._targets: tuple[str, ...] | None = None
        self._toolchains: tuple[str, ...] | None = None

    def static(self, arch: str, key: Key, toolchain: str) -> StaticLookup:
        """Static evidence of a workload for ``arch`` (``sm_90``) and ``toolchain`` (``nvrtc 13.0.88``)."""
        file = self._static_file(arch, key.module)
        toolchains = file.toolchains if file else {}
        having = {name: tests for name, tests in toolchains.items() if key.workload in tests.get(key.test, {})}
        record = having[toolchain][key.test][key.workload] if toolchain in having else None
        return StaticLookup(record, tuple(sorted(having.keys() - {toolchain})))

    def static_tests(self, arch: str, module: str, toolchain: str) -> dict[str, dict[str, StaticRecord]]:
        """All static evidence of a module for ``arch`` and ``toolchain``, by test and workload."""
        file = self._static_file(arch, module)
        return file.toolchains.get(toolchain, {}) if file else {}

    def time(self, device: str, key: Key) -> TimeRecord | None:
        """Time evidence of a workload on a GPU model (``nvidia-h200``)."""
        file = self._time_file(device, key.module)
        return file.tests.get(key.test, {}).get(key.workload) if file else None

    def time_tests(self, device: str, module: str) -> dict[str, dict[str, TimeRecord]]:
        """All time evidence of a module on a GPU model, by test and workload."""
        file = self._time_file(device, module)
        return file.tests if file else {}

    def sessions(self, device: str, module: str) -> tuple[Session, ...]:
        """The sessions that a module's rounds name, oldest first."""
        file = self._time_file(device, module)
        return file.sessions if file else ()

    def targets(self) -> tuple[str, ...]:
        """Architectures with static baselines, then GPU models with time baselines."""
        if self._targets is None:
            self._targets = layout.targets(self.root)
        return self._targets

    def archs(self) -> tuple[str, ...]:
        """Architectures with static baselines, in numeric order."""
        return tuple(filter(layout.is_arch, self.targets()))

    def archs_asked(self) -> tuple[str, ...]:
        """Those that kernels are compiled for that name none themselves.

        All where each is named by kernels alone, or the manifest cannot be read, which the end of the run tells.
        """
        archs, named = self.archs(), frozenset[str]()
        with contextlib.suppress(BaselineError):
            found = manifest.read(self.root)
            named = frozenset(found.named_by_kernels if found is not None else ())
        return tuple(arch for arch in archs if arch not in named) or archs

    def devices(self) -> tuple[str, ...]:
        """GPU models with time baselines, by name."""
        return tuple(filter(layout.is_device, self.targets()))

    def toolchains(self) -> tuple[str, ...]:
        """Compilers that the manifest declares, or, where it declares none, all that have static baselines."""
        if self._toolchains is None:
            found = manifest.read(self.root)
            self._toolchains = found.toolchains if found is not None else ()
            self._toolchains = self._toolchains or self.recorded_toolchains()
        return self._toolchains

    def recorded_toolchains(self) -> tuple[str, ...]:
        """Compilers that have static baselines, by name."""
        files = (self._static_file(arch, module) for arch in self.archs() for module in self.modules(arch))
        return tuple(sorted({name for file in files if file is not None for name in file.toolchains}))

    def modules(self, target: str) -> tuple[str, ...]:
        """Test modules that have a file for a target, sorted."""
        if target not in self._modules:
            self._modules[target] = tuple(module for module, _ in layout.evidence_files(self.root, target))
        return self._modules[target]

    def keys(self, target: str) -> tuple[Key, ...]:
        """Every workload with a baseline for a target, sorted."""
        found: set[Key] = set()
        for module in self.modules(target):
            file = self.load(target, module)
            records = file.records() if file else ()
            found.update(Key(module=module, test=test, workload=workload) for _, test, workload, _ in records)
        return tuple(sorted(found))

    def all_keys(self) -> tuple[Key, ...]:
        """Every workload with a baseline for any target, sorted."""
        return tuple(sorted({key for target in self.targets() for key in self.keys(target)}))

    def cubin(self, sha256: str) -> bytes:
        """Machine code whose content has this hash.  Raises ``CubinError``."""
        return read_cubin(self.root, sha256)

    def load(self, target: str, module: str) -> EvidenceFile | None:
        """The file of a target and module as it is on disk, read once per store; None if there is none."""
        if (target, module) not in self._files:
            path = layout.evidence_path(self.root, target, module)
            content = read_bounded(path, MAX_JSON_BYTES)
            self._files[target, module] = None if content is None else decode(content, path, target)
        return self._files[target, module]

    def written_since(self, moment: float, module: str) -> Path | None:
        """A file of this module's records that was written since then, in seconds since 1970; None if none was."""
        paths = (layout.evidence_path(self.root, target, module) for target in layout.targets(self.root))
        return next((path for path in paths if path.exists() and path.stat().st_ctime > moment), None)

    @contextlib.contextmanager
    def exclusive(self, say: Say = silent) -> Iterator[None]:
        """Holds the folder's lock, as ``transaction.exclusive`` says; every file is read anew inside and afterwards."""
        with transaction.exclusive(self.root, say):
            self.forget()
            try:
                yield
            finally:
                self.forget()

    def forget(self) -> None:
        """Reads everything anew at its next use."""
        self._files.clear()
        self._modules.clear()
        self._targets = self._toolchains = None

    def write(self, update: Update, say: Say = silent) -> list[Path]:
        """Merges the update into the folder, by the rules of ``merging``, and returns the files whose bytes changed.

        The manifest, which gets new targets, is not among them.  All is read, merged and checked before the first byte
        is written; cubins go before the files that name them.  ``say`` is told which other update it waits for.
        Raises ``UnwritableEvidenceError``, ``BaselineWriteError``, ``BaselineLockedError``, ``BaselineLockError``,
        ``UnsafePathError`` and what reading raises: a file that cannot be understood is never overwritten.
        """
        first = not (self.root / working_folder.NAME).exists()
        plan = self._plan(update) if first else None  # a refused update makes no folder
        if plan == [] and not self.root.exists():
            return []
        with self.exclusive(say):
            if plan is None or layout.targets(self.root):
                plan = self._plan(update)
            toolchains = {*update.toolchains, *(self.toolchains() if self.root.is_dir() else ())}
            named = manifest.with_targets(self.root, update.targets, toolchains, update.profile, update.asked)
            written = transaction.write_all(self.root, plan)
            transaction.write_all(self.root, named)
            return written

    def _plan(self, update: Update) -> list[tuple[Path, bytes]]:
        """The writes that put the update on disk, in their order, but for the manifest."""
        return self._cubin_plan(update) + self._static_plan(update) + self._time_plan(update)

    def _cubin_plan(self, update: Update) -> list[tuple[Path, bytes]]:
        given = {sha256: (path, content) for sha256, path, content in (placed(self.root, one) for one in update.cubins)}
        named = [(key, record.cubin) for (_, _, key), record in update.static.items()]
        named += [(key, record.cubin) for (_, key), record in update.time.items()]
        for key, sha256 in named:
            if sha256 and sha256 not in given:
                try:
                    self.cubin(sha256)
                except CubinError as error:
                    raise UnwritableEvidenceError(
                        f"{key}: its cubin is neither in this update nor in the store"
                    ) from error
        return [given[sha256] for sha256 in sorted(given) if not self.has_cubin(sha256)]

    def has_cubin(self, sha256: str) -> bool:
        """Whether the store has machine code with this hash, and it is whole."""
        try:
            self.cubin(sha256)
        except CubinError:
            return False
        return True

    def _static_plan(self, update: Update) -> list[tuple[Path, bytes]]:
        groups: dict[tuple[str, str], list[tuple[str, Key, StaticRecord]]] = defaultdict(list)
        for (arch, toolchain, key), record in update.static.items():
            groups[arch, key.module].append((toolchain, key, record))
        plan = []
        for (arch, module), records in sorted(groups.items()):
            old = self._static_file(arch, module)
            plan += self.changed(module, old, merge_static(old, arch, records))
        return plan

    def _time_plan(self, update: Update) -> list[tuple[Path, bytes]]:
        times, counters, beside = _by_file(update.time), _by_file(update.counters), _by_file(update.beside)
        stays = _by_file(update.stays)
        plan = []
        for place in sorted({*times, *counters, *beside}):
            device, module = place
            old = self._time_file(device, module)
            new = merge_time(old, device, times[place], update.sessions, counters[place], beside[place], stays[place])
            plan += self.changed(module, old, new)
        return plan

    def changed(self, module: str, old: EvidenceFile | None, new: EvidenceFile) -> list[tuple[Path, bytes]]:
        """The writes that put ``new`` on disk: none if it says what ``old`` does, however that is formatted."""
        if new == old:
            return []
        path = layout.evidence_path(self.root, new.target, module)
        content = canonical_bytes(new)
        if len(content) > MAX_JSON_BYTES:
            raise UnwritableEvidenceError(
                f"{path} would have {len(content)} bytes and could not be read again: the limit is {MAX_JSON_BYTES}. "
                "Split the test module."
            )
        return [(path, content)]

    def _static_file(self, arch: str, module: str) -> StaticFile | None:
        file = self.load(arch, module)
        if isinstance(file, TimeFile) or not layout.is_arch(arch):
            raise UnsafePathError(f"'{arch}' is no architecture such as sm_90")
        return file

    def _time_file(self, device: str, module: str) -> TimeFile | None:
        file = self.load(device, module)
        if isinstance(file, StaticFile) or not layout.is_device(device):
            raise UnsafePathError(f"'{device}' is no GPU model such as nvidia-h200")
        return file


def _by_file(update: Mapping[tuple[str, Key], _T]) -> defaultdict[tuple[str, str], list[tuple[Key, _T]]]:
    """What is recorded of workloads on GPU models, by GPU model and test module."""
    found: defaultdict[tuple[str, str], list[tuple[Key, _T]]] = defaultdict(list)
    for (device, key), one in update.items():
        found[device, key.module].append((key, one))
    return found
