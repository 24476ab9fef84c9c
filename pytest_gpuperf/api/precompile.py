"""What a test's baselines tell of machine code before it is read: the profiles of cubins that are on record."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.model.evidence import StaticProfile
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import TestRecord


def recorded_profiles(worker: Run, book: TestRecord, archs: Iterable[str]) -> dict[str, StaticProfile]:
    """Profiles that the module's tests have on record, by the hash of their machine code.

    Empty where baselines are written: what is recorded is read from the machine code.
    """
    options = worker.options
    if not options.active or options.update is not None:
        return {}
    place_of_files = (book.module, *archs)
    try:
        files = [worker.store.static_tests(arch, book.module, toolchain()) for arch in place_of_files[1:]]
    except BaselineError:  # for the judge to tell
        return {}
    before, profiles = worker.profiles_on_record.get(place_of_files, ((), {}))
    if len(before) != len(files) or any(one is not other for one, other in zip(before, files, strict=True)):
        records = (record for tests in files for works in tests.values() for record in works.values())
        profiles = {record.profile.code_hash: record.profile for record in records}
        worker.profiles_on_record[place_of_files] = tuple(files), profiles
    return profiles
