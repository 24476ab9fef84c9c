"""What a test's baselines tell of a source before its machine code is read: its other kernels, and their profiles.

Kernels that the tests of a module had of one source, with the same headers and options, are compiled along with the
first of them.  That is a matter of speed alone; a kernel that was wrongly foreseen was compiled without effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.compile.version import toolchain
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.model.evidence import KernelBinary, StaticProfile, StaticRecord


def name_expressions(
    worker: Worker, book: TestBook, tests: Set[str], kernel: str, source_hash: str
) -> tuple[str | None, ...]:
    """What to compile along with ``kernel``: the instances of templates that ``tests`` take from the same source.

    None among them stands for the source's kernels that are no templates, which one compilation makes together.  A
    source that was edited since is recognised by what ``book``'s own test had of it.  Empty under pytest-xdist, whose
    workers would all compile the same, and where there is no gate or no readable baseline.
    """
    if worker.number is not None or not worker.options.active:
        return ()
    try:
        known = worker.store.static_tests(worker.targets[0], book.module, toolchain())
    except BaselineError:  # for the judge to tell
        return ()
    records = [record for test in known.keys() & tests for record in known[test].values()]
    of_kernel = {record.source_hash for record in known.get(book.test, {}).values() if record.kernel == kernel}
    sources = {source_hash} if source_hash in of_kernel else {source_hash, *of_kernel}
    kernels = {record.kernel for record in records if record.source_hash in sources}
    return tuple(dict.fromkeys(name if "<" in name else None for name in sorted(kernels)))


def recorded_codes(worker: Worker, book: TestBook, binary: KernelBinary) -> set[str]:
    """Code hashes that this test has on record of the binary's kernel, from the same source by the same compiler."""
    if not worker.options.active or not binary.source_hash:
        return set()
    try:
        known = worker.store.static_tests(binary.arch, book.module, binary.toolchain)
    except BaselineError:  # for the judge to tell
        return set()
    return {
        record.profile.code_hash
        for record in known.get(book.test, {}).values()
        if (record.kernel, record.source_hash) == (binary.name, binary.source_hash)
    }


def recorded_profiles(worker: Worker, book: TestBook, archs: Iterable[str]) -> dict[tuple[str, str], StaticProfile]:
    """Profiles that the module's tests have on record, by the SHA-256 of the cubin and the kernel's symbol in it.

    Empty where baselines are written: what is recorded is read from the machine code.  What two records contradict
    each other about is left out.
    """
    options = worker.options
    if not options.active or options.update is not None:
        return {}
    try:
        known = list(archs)
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
