"""The baselines as one object: lookups for judges, and ``write`` for the update.

``Baselines`` reads from a mapping of paths to bytes, as git has them at a revision; ``BaselineStore`` from the folder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_gpuperf.baselines import layout, manifest, writing
from pytest_gpuperf.baselines.baseline_errors import BaselineError, unreadable
from pytest_gpuperf.baselines.cubin_store import compressed, read_cubin, stored_cubins
from pytest_gpuperf.baselines.records import Place, Records, decode, encode, read_bounded
from pytest_gpuperf.model.evidence import Key, StaticProfile, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord, WorkloadRecords


@dataclasses.dataclass(frozen=True)
class Update:
    """Evidence that is to become the baseline, each record in the place of the one before."""

    static: Mapping[tuple[str, str, Key], StaticRecord] = dataclasses.field(default_factory=dict)
    """By architecture (``sm_90``), toolchain (``nvrtc 13.0.88``) and workload."""
    time: Mapping[tuple[str, Key], TimeRecord] = dataclasses.field(default_factory=dict)
    """By GPU model (``nvidia-h200``) and workload; each with the session of its rounds."""
    cubins: Collection[bytes] = ()
    """Machine code that the records name, unless the store has it already."""
    removed: Collection[Key] = ()
    """Workloads whose records are removed, of every target."""
    roofs: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    """By GPU model, for those without any."""
    asked: Collection[str] | None = None
    """Architectures of the run: evidence of others is that of kernels that name them.  None: all are."""

    def by_file(self) -> dict[tuple[str, str], Records]:
        """The new records of each file, by target and module."""
        found: dict[tuple[str, str], dict[Place, Any]] = {}
        for (arch, toolchain, key), record in self.static.items():
            found.setdefault((arch, key.module), {})[key, toolchain] = record
        for (device, key), timed in self.time.items():
            found.setdefault((device, key.module), {})[key, ""] = timed
        return dict(sorted(found.items()))


class Baselines:
    """Reads records lazily, each file and the list of files once.

    Every method raises a ``BaselineError`` and nothing else for whatever it finds.  A missing file is no error: it
    is no baseline.  Not thread-safe.
    """

    def __init__(self, files: Mapping[str, bytes], name: str) -> None:
        self._files = files
        self.name = name
        """Stands before a file's path in messages: the folder, or ``HEAD~1:baselines``."""
        self.forget()

    def forget(self) -> None:
        """Reads everything anew at its next use."""
        self._loaded: dict[tuple[str, str], Records] = {}
        self._tests: dict[tuple[str, str], dict[str, dict[str, dict[str, Any]]]] = {}
        self._places: list[tuple[str, str]] | None = None
        self._workloads: dict[Key, WorkloadRecords] | None = None

    def paths(self) -> Iterable[str]:
        """Of all files, relative to the folder."""
        return self._files

    def content(self, path: str) -> bytes | None:
        return self._files.get(path)

    def manifest(self) -> manifest.Manifest | None:
        """None if the folder has none."""
        content = self.content(manifest.FILE)
        return None if content is None else manifest.decoded(content, f"{self.name}/{manifest.FILE}")

    def roofs(self, device: str) -> Mapping[str, float]:
        """Rates of a GPU model by the names of ``model.roofs.ROOFS``; empty without.

        Also where the manifest cannot be read, which the end of the run tells.
        """
        with contextlib.suppress(BaselineError):
            if (found := self.manifest()) is not None:
                return found.roofs.get(device, {})
        return {}

    def static(self, arch: str, key: Key, toolchain: str) -> StaticRecord | None:
        """Static evidence of a workload for ``arch`` (``sm_90``) and ``toolchain`` (``nvrtc 13.0.88``)."""
        return self.of_test(arch, key, toolchain).get(key.workload)

    def compilers(self, arch: str, key: Key, own: str) -> list[str]:
        """The ``own`` toolchain, then others that have evidence of a workload, the latest first."""
        tests = self._by_compiler(arch, key.module).items()
        others = {name for name, those in tests if key.workload in those.get(key.test, {})} - {own}
        return [own, *sorted(others, key=lambda name: [*map(int, re.findall(r"\d+", name))], reverse=True)]

    def time(self, device: str, key: Key) -> TimeRecord | None:
        """Time evidence of a workload on a GPU model (``nvidia-h200``)."""
        return self.of_test(device, key).get(key.workload)

    def of_test(self, target: str, key: Key, toolchain: str = "") -> Mapping[str, Any]:
        """Records of the test of ``key`` by workload: for an architecture and a toolchain, or times on a GPU model."""
        return self._by_compiler(target, key.module).get(toolchain, {}).get(key.test, {})

    def profiles(self, arch: str, module: str, toolchain: str) -> dict[str, StaticProfile]:
        """Profiles of a module's kernels by the hash of their code."""
        tests = self._by_compiler(arch, module).get(toolchain, {}).values()
        return {record.profile.code_hash: record.profile for works in tests for record in works.values()}

    def workloads(self) -> dict[Key, WorkloadRecords]:
        """All that is recorded."""
        if self._workloads is not None:
            return self._workloads
        found: dict[Key, WorkloadRecords] = {}
        for target, module in self.places():
            for (key, toolchain), record in self.load(target, module).items():
                known = found.setdefault(key, WorkloadRecords({}, {}))
                if isinstance(record, StaticRecord):
                    known.static[target, toolchain] = record
                else:
                    known.times[target] = record
        self._workloads = found
        return found

    def targets(self) -> tuple[str, ...]:
        """Architectures with static baselines by number, then GPU models with time baselines by name."""
        return tuple(dict.fromkeys(target for target, _ in self.places()))

    def archs(self) -> tuple[str, ...]:
        """Architectures with static baselines, in numeric order."""
        return tuple(filter(layout.is_arch, self.targets()))

    def places(self) -> list[tuple[str, str]]:
        """Target and module of every file of records, in the order of ``targets``."""
        if self._places is None:
            found = filter(None, map(layout.place_of, self.paths()))
            self._places = sorted(found, key=lambda place: (layout.target_order(place[0]), place[1]))
        return self._places

    def load(self, target: str, module: str) -> Records:
        """The records of a target and module, read once; without a file there are none."""
        if (target, module) not in self._loaded:
            path = layout.record_file(target, module)
            content = self.content(path)
            name = f"{self.name}/{path}"
            self._loaded[target, module] = {} if content is None else decode(content, name, target, module)
        return self._loaded[target, module]

    def _by_compiler(self, target: str, module: str) -> dict[str, dict[str, dict[str, Any]]]:
        """The records of a file by toolchain (empty for times), test and workload."""
        if (target, module) not in self._tests:
            found: dict[str, dict[str, dict[str, Any]]] = {}
            for (key, toolchain), record in self.load(target, module).items():
                found.setdefault(toolchain, {}).setdefault(key.test, {})[key.workload] = record
            self._tests[target, module] = found
        return self._tests[target, module]


class BaselineStore(Baselines):
    """The baselines in a folder, with manifest and machine code.  Processes exclude each other when they write.

    A file that cannot be read and a link out of the folder are errors; a folder that is not there has no baselines.
    """

    def __init__(self, root: Path) -> None:
        super().__init__({}, str(root))
        self.root = root

    def paths(self) -> Iterable[str]:
        found = []
        for folder, _, names in os.walk(self.root, onerror=_refuse):
            inside = Path(folder).relative_to(self.root)
            found += [(inside / name).as_posix() for name in names if name.endswith(layout.RECORDS)]
        return found

    def content(self, path: str) -> bytes | None:
        return read_bounded(layout.inside(self.root, self.root / path))

    def archs_asked(self) -> tuple[str, ...]:
        """Those that kernels are compiled for that name none themselves.

        All where each is named by kernels alone, or the manifest cannot be read, which the end of the run tells.
        """
        found = None
        with contextlib.suppress(BaselineError):
            found = self.manifest()
        named = found.named_by_kernels if found is not None else ()
        return tuple(arch for arch in self.archs() if arch not in named) or self.archs()

    def cubin(self, sha256: str) -> bytes:
        """Machine code whose content has this hash.  Raises as ``read_cubin``."""
        return read_cubin(self.root, sha256)

    def has_cubin(self, sha256: str) -> bool:
        """Whether the store has machine code with this hash, and it is whole."""
        try:
            self.cubin(sha256)
        except BaselineError:
            return False
        return True

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Holds the folder's lock, as ``writing.exclusive`` says; every file is read anew inside and afterwards."""
        with writing.exclusive(self.root):
            self.forget()
            try:
                yield
            finally:
                self.forget()

    def write(self, update: Update, *, sweep: bool = False) -> list[Path]:
        """Merges the update into the folder and returns the files whose bytes changed; ``sweep`` as ``replace_files``.

        All is read, merged and checked before the first byte is written; cubins go before the files that name them, and
        what goes away goes last.  Raises ``BaselineError``: a file that cannot be understood is never overwritten.
        """
        if not self.root.exists() and not self._plan(update):
            return []  # a refused update makes no folder
        with self.exclusive():
            return self.replace_files([*self._plan(update), *self._listed(update)], sweep=sweep)

    def replace_files(self, plan: Sequence[tuple[Path, bytes]], *, sweep: bool) -> list[Path]:
        """Write the files of a plan and delete those without content; ``sweep`` the machine code that no record names.

        The caller holds the lock.  Returns the files that were written.
        """
        written = writing.replace_all(self.root, plan)
        if sweep:
            self.forget()
            named = {record.cubin for place in self.places() for record in self.load(*place).values()}
            stored = stored_cubins(self.root).items()
            writing.replace_all(self.root, [(path, b"") for path, sha256 in stored if sha256 not in named])
        return written

    def rewritten(self, target: str, module: str, records: Records) -> tuple[Path, bytes]:
        """The write that puts a file on disk; of one without records the content is empty, and it goes."""
        path = layout.inside(self.root, self.root / layout.record_file(target, module))
        return path, encode(records, target) if records else b""

    def _plan(self, update: Update) -> list[tuple[Path, bytes]]:
        """The writes that put the update on disk, in their order, but for the manifest."""
        given = {hashlib.sha256(one).hexdigest(): one for one in update.cubins}
        missing = [sha256 for sha256 in sorted(given) if not self.has_cubin(sha256)]
        plan = [(layout.cubin_path(self.root, sha256), compressed(given[sha256])) for sha256 in missing]
        for (target, module), new in update.by_file().items():
            for (key, _), record in new.items():
                if record.cubin and record.cubin not in given and not self.has_cubin(record.cubin):
                    raise BaselineError(f"{key}: its cubin is neither in this update nor in the store")
            plan.append(self.rewritten(target, module, {**self.load(target, module), **new}))
        removed = set(update.removed)
        for place in self.places() if removed else ():
            kept = {at: record for at, record in self.load(*place).items() if at[0] not in removed}
            if len(kept) < len(self.load(*place)):
                plan.append(self.rewritten(*place, {**kept, **update.by_file().get(place, {})}))
        return plan

    def _listed(self, update: Update) -> list[tuple[Path, bytes]]:
        """The write that adds the targets and compilers of an update to those there and listed; none without any.

        New architectures that the run was not asked for are those of kernels that name them.
        """
        old = self.manifest() or manifest.manifest_of((), (), ())
        archs = {arch for arch, _, _ in update.static}
        known = {*old.targets, *self.targets()}
        asked = archs if update.asked is None else set(update.asked)
        new = manifest.manifest_of(
            known | archs | {device for device, _ in update.time},
            {*old.toolchains, *(toolchain for _, toolchain, _ in update.static)},
            {*old.named_by_kernels, *archs - known} - asked,
            {**update.roofs, **old.roofs},
        )
        return [(self.root / manifest.FILE, new.encoded())] if new.targets else []


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise unreadable(error.filename, str(error.strerror))
