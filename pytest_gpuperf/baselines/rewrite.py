"""Bringing a whole folder of baselines to the current schema.  Reading needs it not: older files are understood."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pytest_gpuperf.baselines import layout, transaction
from pytest_gpuperf.baselines.canonical import canonical_bytes
from pytest_gpuperf.baselines.cubin_store import compressed, read_cubin, stored_cubins
from pytest_gpuperf.baselines.file_types import EvidenceFile, TimeFile
from pytest_gpuperf.baselines.rounding import with_counts
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.judge.counters import Counts


def rewrite(store: BaselineStore) -> list[Path]:
    """Write every file as an update would write it today, and return those whose bytes changed.

    All is read before the first byte is written; the evidence stays the same.  Raises ``BaselineError``.
    """
    with store.exclusive():
        plan = [
            (path, canonical_bytes(_rounded(file)))
            for target in store.targets()
            for module, path in layout.evidence_files(store.root, target)
            if (file := store.load(target, module)) is not None
        ]
        cubins = stored_cubins(store.root)
        packed = [
            (layout.cubin_path(store.root, sha256), compressed(read_cubin(store.root, sha256)))
            for sha256 in sorted(set(cubins.values()))
        ]
        written = transaction.write_all(store.root, [*packed, *plan])
        for path in cubins:
            if path.name.endswith(layout.PLAIN):
                transaction.remove(path)
        return written


def _rounded(file: EvidenceFile) -> EvidenceFile:
    """Counters to the digits that they are written with today."""
    if not isinstance(file, TimeFile):
        return file
    tests = {
        test: {name: with_counts(record, Counts.of(record)) for name, record in workloads.items()}
        for test, workloads in file.tests.items()
    }
    return msgspec.structs.replace(file, tests=tests)


def size_of(root: Path) -> int:
    """Bytes of all files below a folder of baselines.  Raises ``UnsafePathError`` if it is a link."""
    layout.refuse_linked(root)
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
