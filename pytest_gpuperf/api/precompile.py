"""What a test's baselines tell of machine code before it is read: the profiles of cubins that are on record."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.layout import evidence_path
from pytest_gpuperf.compile.version import toolchain
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.model.evidence import StaticProfile, StaticRecord


def recorded_profiles(worker: Worker, book: TestBook, archs: Iterable[str]) -> dict[tuple[str, str], StaticProfile]:
    """Profiles that the module's tests have on record, by the SHA-256 of the cubin and the kernel's symbol in it.

    Empty where baselines are written: what is recorded is read from the machine code.  What two records contradict
    each other about is left out, and under CI what the change under test brought along: it could say that new machine
    code has the hash of another.
    """
    options = worker.options
    if not options.active or options.update is not None:
        return {}
    try:
        known = [arch for arch in archs if worker.trust.believes(evidence_path(worker.store.root, arch, book.module))]
        files = [worker.store.static_tests(arch, book.module, toolchain()) for arch in known]
    except BaselineError:  # for the judge to tell
        return {}
    place_of_files = (book.module, *known)
    before, profiles = worker.profiles_on_record.get(place_of_files, ((), {}))
    if len(before) != len(files) or any(one is not other for one, other in zip(before, files, strict=True)):
        profiles = _undisputed(record for tests in files for works in tests.values() for record in works.values())
        worker.profiles_on_record[place_of_files] = tuple(files), profiles
    return profiles


def _undisputed(records: Iterable[StaticRecord]) -> dict[tuple[str, str], StaticProfile]:
    """Profiles by cubin and symbol, without those that two records contradict each other about."""
    found: dict[tuple[str, str], StaticProfile] = {}
    doubtful = set()
    for record in records:
        place = (record.cubin, record.symbol or record.kernel)
        if found.setdefault(place, record.profile) != record.profile:
            doubtful.add(place)
    return {place: profile for place, profile in found.items() if place not in doubtful}
