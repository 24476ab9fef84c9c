"""The baselines as one object: lookups for judges, and ``write`` for the update.

``Baselines`` reads from a mapping of paths to bytes: the folder on disk, or a revision of it in git.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_gpuperf.baselines import layout, manifest, writing
from pytest_gpuperf.baselines.baseline_errors import BaselineError, CubinError, unreadable
from pytest_gpuperf.baselines.cubin_store import placed, read_cubin, stored_cubins
from pytest_gpuperf.baselines.merging import Update, merged
from pytest_gpuperf.baselines.records import Records, decode, encode, read_bounded
from pytest_gpuperf.baselines.writing import Say, silent
from pytest_gpuperf.model.evidence import Key, StaticProfile, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord, WorkloadRecords


class StaticLookup(NamedTuple):
    """Static evidence of one workload on one architecture."""

    record: StaticRecord | None
    """Evidence of the toolchain asked for."""
    other_toolchains: tuple[str, ...]
    """Toolchains that have the workload too: without a record, they tell NOT-COMPARABLE from NEW."""


class FolderFiles(Mapping[str, bytes]):
    """The files of records in a folder, read when they are asked for.  Without a folder there are none.

    Raises ``BaselineError`` for a file that cannot be read, and for a link out of the folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def __getitem__(self, path: str) -> bytes:
        content = read_bounded(layout.inside(self._root, self._root / path))
        if content is None:
            raise KeyError(path)
        return content

    def __iter__(self) -> Iterator[str]:
        found = []
        try:
            for folder, below, names in os.walk(self._root, onerror=_refuse):
                below[:] = [one for one in below if one not in (layout.CUBIN_FOLDER, writing.WORK)]
                inside = Path(folder).relative_to(self._root)
                found += [(inside / name).as_posix() for name in names if name.endswith(layout.RECORDS)]
        except FileNotFoundError:
            return
        yield from sorted(found)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _refuse(error: OSError) -> None:
    raise error if isinstance(error, FileNotFoundError) else unreadable(error.filename, str(error.strerror))


class Baselines:
    """Reads records lazily, each file and the list of files once.

    Every method raises a ``BaselineError`` and nothing else for whatever it finds.  A missing file is no error: it
    is no baseline.  Not thread-safe.
    """

    def __init__(self, files: Mapping[str, bytes], name: str) -> None:
        self.files = files
        self.name = name
        """Stands before a file's path in messages: the folder, or ``HEAD~1:baselines``."""
        self.forget()

    def forget(self) -> None:
        """Reads everything anew at its next use."""
        self._loaded: dict[tuple[str, str], Records] = {}
        self._tests: dict[tuple[str, str], dict[str, dict[str, dict[str, Any]]]] = {}
        self._profiles: dict[tuple[str, str, str], dict[str, StaticProfile]] = {}
        self._listed: dict[str, tuple[str, ...]] | None = None
        self._toolchains: tuple[str, ...] | None = None

    def static(self, arch: str, key: Key, toolchain: str) -> StaticLookup:
        """Static evidence of a workload for ``arch`` (``sm_90``) and ``toolchain`` (``nvrtc 13.0.88``)."""
        compilers = self._by_compiler(arch, key.module).items()
        found = {name: of[key.test][key.workload] for name, of in compilers if key.workload in of.get(key.test, {})}
        return StaticLookup(found.get(toolchain), tuple(sorted(found.keys() - {toolchain})))

    def static_tests(self, arch: str, module: str, toolchain: str) -> dict[str, dict[str, StaticRecord]]:
        """All static evidence of a module for ``arch`` and ``toolchain``, by test and workload."""
        return self._by_compiler(arch, module).get(toolchain, {})

    def profiles(self, arch: str, module: str, toolchain: str) -> dict[str, StaticProfile]:
        """Profiles of a module's kernels by the hash of their code: kept, since every kernel of a test asks."""
        place = arch, module, toolchain
        if place not in self._profiles:
            tests = self.static_tests(*place).values()
            profiles = (record.profile for works in tests for record in works.values())
            self._profiles[place] = {one.code_hash: one for one in profiles}
        return self._profiles[place]

    def time(self, device: str, key: Key) -> TimeRecord | None:
        """Time evidence of a workload on a GPU model (``nvidia-h200``)."""
        return self.time_tests(device, key.module).get(key.test, {}).get(key.workload)

    def time_tests(self, device: str, module: str) -> dict[str, dict[str, TimeRecord]]:
        """All time evidence of a module on a GPU model, by test and workload."""
        return self._by_compiler(device, module).get("", {})

    def workloads(self, without: Collection[tuple[str, str]] = ()) -> dict[Key, WorkloadRecords]:
        """All that is recorded, but for files ``without``, by their targets and modules."""
        found: dict[Key, WorkloadRecords] = {}
        for target, module in self.places():
            for (key, toolchain), record in (
                self.load(target, module).items() if (target, module) not in without else ()
            ):
                known = found.setdefault(key, WorkloadRecords({}, {}))
                if isinstance(record, StaticRecord):
                    known.static[target, toolchain] = record
                else:
                    known.times[target] = record
        return found

    def targets(self) -> tuple[str, ...]:
        """Architectures with static baselines by number, then GPU models with time baselines by name."""
        return tuple(self._modules())

    def archs(self) -> tuple[str, ...]:
        """Architectures with static baselines, in numeric order."""
        return tuple(filter(layout.is_arch, self.targets()))

    def devices(self) -> tuple[str, ...]:
        """GPU models with time baselines, by name."""
        return tuple(filter(layout.is_device, self.targets()))

    def modules(self, target: str) -> tuple[str, ...]:
        """Test modules that have a file for a target, sorted."""
        return self._modules().get(target, ())

    def places(self) -> list[tuple[str, str]]:
        """Target and module of every file of records."""
        return [(target, module) for target in self.targets() for module in self.modules(target)]

    def recorded_toolchains(self) -> tuple[str, ...]:
        """Compilers that have static baselines, by name."""
        return tuple(sorted({name for place in self.places() for name in self._by_compiler(*place) if name}))

    def keys(self, target: str, toolchain: str | None = None) -> tuple[Key, ...]:
        """Every workload with a baseline for a target, of all compilers or of one, sorted."""
        places = (place for module in self.modules(target) for place in self.load(target, module))
        return tuple(sorted({key for key, compiler in places if toolchain in (None, compiler)}))

    def load(self, target: str, module: str) -> Records:
        """The records of a target and module, read once; without a file there are none."""
        if (target, module) not in self._loaded:
            path = layout.record_file(target, module)
            content = self.files.get(path)
            self._loaded[target, module] = (
                {} if content is None else decode(content, f"{self.name}/{path}", target, module)
            )
        return self._loaded[target, module]

    def _by_compiler(self, target: str, module: str) -> dict[str, dict[str, dict[str, Any]]]:
        """The records of a file by toolchain (empty for times), test and workload."""
        if (target, module) not in self._tests:
            found: dict[str, dict[str, dict[str, Any]]] = {}
            for (key, toolchain), record in self.load(target, module).items():
                found.setdefault(toolchain, {}).setdefault(key.test, {})[key.workload] = record
            self._tests[target, module] = found
        return self._tests[target, module]

    def _modules(self) -> dict[str, tuple[str, ...]]:
        """Modules by target."""
        if self._listed is None:
            places = sorted(filter(None, map(layout.place_of, self.files)))
            targets = sorted({target for target, _ in places}, key=layout.target_order)
            self._listed = {one: tuple(module for target, module in places if target == one) for one in targets}
        return self._listed


class BaselineStore(Baselines):
    """The baselines in a folder, with manifest and machine code.  Processes exclude each other when they write."""

    def __init__(self, root: Path) -> None:
        super().__init__(FolderFiles(root), str(root))
        self.root = root

    def archs_asked(self) -> tuple[str, ...]:
        """Those that kernels are compiled for that name none themselves.

        All where each is named by kernels alone, or the manifest cannot be read, which the end of the run tells.
        """
        found = None
        with contextlib.suppress(BaselineError):
            found = manifest.read(self.root)
        named = found.named_by_kernels if found is not None else ()
        return tuple(arch for arch in self.archs() if arch not in named) or self.archs()

    def toolchains(self) -> tuple[str, ...]:
        """Compilers that the manifest declares, or, where it declares none, all that have static baselines."""
        if self._toolchains is None:
            found = manifest.read(self.root)
            self._toolchains = (found.toolchains if found is not None else ()) or self.recorded_toolchains()
        return self._toolchains

    def cubin(self, sha256: str) -> bytes:
        """Machine code whose content has this hash.  Raises ``CubinError``."""
        return read_cubin(self.root, sha256)

    def has_cubin(self, sha256: str) -> bool:
        """Whether the store has machine code with this hash, and it is whole."""
        try:
            self.cubin(sha256)
        except CubinError:
            return False
        return True

    @contextlib.contextmanager
    def exclusive(self, say: Say = silent) -> Iterator[None]:
        """Holds the folder's lock, as ``writing.exclusive`` says; every file is read anew inside and afterwards."""
        with writing.exclusive(self.root, say):
            self.forget()
            try:
                yield
            finally:
                self.forget()

    def write(self, update: Update, say: Say = silent) -> list[Path]:
        """Merges the update into the folder, by the rules of ``merging``, and returns the files whose bytes changed.

        All is read, merged and checked before the first byte is written; cubins go before the files that name them, and
        what goes away goes last.  ``say`` is told when it waits for another update.  Raises ``BaselineError``: a file
        that cannot be understood is never overwritten.
        """
        if not self.root.exists() and not self._plan(update):
            return []  # a refused update makes no folder
        with self.exclusive(say):
            plan = self._plan(update)
            toolchains = {*self.toolchains(), *(toolchain for _, toolchain, _ in update.static)}
            plan += manifest.with_targets(self.root, self.targets(), update.targets, toolchains, update.asked)
            return self.replace_files(plan, sweep=update.removed is not None)

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
        return layout.evidence_path(self.root, target, module), encode(records, target) if records else b""

    def _plan(self, update: Update) -> list[tuple[Path, bytes]]:
        """The writes that put the update on disk, in their order, but for the manifest."""
        placed_cubins = [placed(self.root, one) for one in update.cubins]
        given = {sha256: (path, content) for sha256, path, content in placed_cubins}
        plan = [given[sha256] for sha256 in sorted(given) if not self.has_cubin(sha256)]
        for (target, module), part in update.by_file().items():
            for (key, _), record in part.new.items():
                if record.cubin and record.cubin not in given and not self.has_cubin(record.cubin):
                    raise BaselineError(f"{key}: its cubin is neither in this update nor in the store")
            plan.append(self.rewritten(target, module, merged(self.load(target, module), part)))
        return plan
