"""Between evidence in memory, where every workload has all of its own, and on disk, where each fact is written once.

Pure.  Records that differ in nothing but what users of one machine code share become one: of several sources or cubins
of equal code the one of the last workload is written.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

import msgspec

from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.baselines.checks import BadContentError
from pytest_gpuperf.baselines.document_types import (
    Document,
    Hashes,
    SessionRounds,
    StaticCode,
    StaticDocument,
    StaticPart,
    TimedCode,
    TimeDocument,
    TimeUse,
    Use,
)
from pytest_gpuperf.baselines.file_types import EvidenceFile, StaticFile, TimeFile
from pytest_gpuperf.baselines.metric_names import folded, unfolded
from pytest_gpuperf.model.evidence import Figures, Identity, StaticProfile, StaticRecord, TimeRecord
from pytest_gpuperf.model.timed_round import RecordedRound

_T = TypeVar("_T")
_U = TypeVar("_U")
_Tests = dict[str, dict[str, _T]]
"""By test and workload."""
_ByFunction = dict[str, dict[str, dict[str, _T]]]
"""By test without parameters, parameters and workload."""


UNNAMED = "callable"
"""Label of what has no kernel's name."""


def document_of(file: EvidenceFile) -> Document:
    """What is to lie on disk."""
    if isinstance(file, StaticFile):
        parts = {name: _static_part(tests) for name, tests in file.toolchains.items()}
        return StaticDocument(schema=file.schema, target=file.target, toolchains=parts)
    return _time_document(file)


def file_of(document: Document) -> EvidenceFile:
    """What lies on disk, workload by workload.  Raises ``BadContentError`` for names that lead nowhere."""
    if isinstance(document, StaticDocument):
        toolchains = {name: _static_records(part) for name, part in document.toolchains.items()}
        return StaticFile(schema=document.schema, target=document.target, toolchains=toolchains)
    place = {session.id: index for index, session in enumerate(document.sessions)}
    tests = _flat(document.tests, lambda name, use: _time_record(name, use, document.codes, place))
    return TimeFile(schema=document.schema, target=document.target, sessions=document.sessions, tests=tests)


# --- names of tests ------------------------------------------------------------------------------


def _nested(tests: _Tests[_T], convert: Callable[[str, _T], _U]) -> _ByFunction[_U]:
    """By function and parameters; ``convert`` is given the workload's name and its record."""
    found: _ByFunction[_U] = {}
    for test, workloads in tests.items():
        function, bracket, rest = test.partition("[")
        found.setdefault(function, {})[bracket + rest] = {name: convert(name, one) for name, one in workloads.items()}
    return found


def _flat(tests: _ByFunction[_T], convert: Callable[[str, _T], _U]) -> _Tests[_U]:
    found: _Tests[_U] = {}
    for function, cases in tests.items():
        for parameters, workloads in cases.items():
            if "[" in function or (parameters and not parameters.startswith("[")):
                raise BadContentError(
                    f"the test '{quoted(function)}' has '{quoted(parameters)}' for its parameters, which start with ["
                )
            found[function + parameters] = {name: convert(name, one) for name, one in workloads.items()}
    return found


# --- machine code --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _User(Generic[_T]):
    """A workload with what it uses of a machine code."""

    test: str
    workload: str
    record: _T


def _labels(users: Iterable[tuple[str, _U, _User[_T]]]) -> dict[_U, str]:
    """A label for each code: its kernel's name, and, of several codes of a name, whose they are first.

    Users come in the order of their names.  No label depends on how many other codes there are: two branches that add
    some do not call different ones alike.
    """
    first: dict[str, dict[_U, _User[_T]]] = {}
    for kernel, code, user in users:
        first.setdefault(kernel or UNNAMED, {}).setdefault(code, user)
    labels: dict[_U, str] = {}
    taken = set(first)
    for kernel, codes in first.items():
        for code, user in codes.items():
            label = kernel if len(codes) == 1 else next(one for one in _names(kernel, user) if one not in taken)
            taken.add(label)
            labels[code] = label
    return labels


def _names(kernel: str, user: _User[_T]) -> Iterable[str]:
    """What a code of several may be called, the shortest first."""
    bracket = user.test.find("[")
    if bracket >= 0:
        yield f"{kernel} {user.test[bracket:]}"
    yield f"{kernel} ({user.test})"
    yield f"{kernel} ({user.test} [{user.workload}])"
    yield from (f"{kernel} ({number})" for number in itertools.count(2))


def _in_order(tests: _Tests[_T]) -> Iterable[_User[_T]]:
    """Workloads and their records by the numbers in their tests' names, so that [8] comes before [16]."""
    for test in sorted(tests, key=_natural):
        for name in sorted(tests[test], key=_natural):
            yield _User(test, name, tests[test][name])


def _natural(name: str) -> tuple[list[tuple[int, str]], str]:
    parts = re.split(r"(\d{1,18})", name)
    return [(int(part), "") if part.isdecimal() and part.isascii() else (-1, part) for part in parts], name


def _static_part(tests: _Tests[StaticRecord]) -> StaticPart:
    def code_of(record: StaticRecord) -> tuple[str, str, str, bytes]:
        profile = record.profile
        return record.kernel, record.symbol, profile.code_hash, _figure_bytes(profile)

    users = [(code_of(user.record), user) for user in _in_order(tests)]
    labels = _labels((code[0], code, user) for code, user in users)
    codes: dict[str, StaticCode] = {}
    for code, user in users:
        label, record = labels[code], user.record
        known = codes[label].occupancy if label in codes else {}
        occupancy = {} if record.occupancy is None else {_shape(record): record.occupancy}
        codes[label] = StaticCode(
            figures=_figures(record.profile),
            hashes=Hashes(code=record.profile.code_hash, source=record.source_hash, cubin=record.cubin),
            kernel=None if label == record.kernel else record.kernel, symbol=record.symbol,
            occupancy={**known, **occupancy},
        )  # fmt: skip

    def use_of(name: str, record: StaticRecord) -> Use:
        label = labels[code_of(record)]
        return Use(
            code="" if label == name else label, block=record.block, grid=record.grid,
            dynamic_shared_bytes=record.dynamic_shared_bytes, config=record.config,
        )  # fmt: skip

    return StaticPart(codes=codes, tests=_nested(tests, use_of))


def _figures(profile: StaticProfile) -> Figures:
    return Figures(**{name: value for name, value in msgspec.structs.asdict(profile).items() if name != "code_hash"})


def _figure_bytes(profile: StaticProfile) -> bytes:
    """All figures as one value that can be compared and hashed."""
    return msgspec.json.encode({**msgspec.structs.asdict(profile), "opcodes": sorted(profile.opcodes.items())})


def _shape(use: StaticRecord | Use) -> str:
    """``256x1x1``, ``256x1x1+4096``: what occupancy depends on beside the code."""
    block = "x".join(map(str, use.block or ()))
    return f"{block}+{use.dynamic_shared_bytes}" if use.dynamic_shared_bytes else block


def _static_records(part: StaticPart) -> _Tests[StaticRecord]:
    profiles = {
        label: StaticProfile(**msgspec.structs.asdict(code.figures), code_hash=code.hashes.code)
        for label, code in part.codes.items()
    }

    def record_of(name: str, use: Use) -> StaticRecord:
        label = use.code or name
        code = _known(part.codes, label, name)
        return StaticRecord(
            kernel=label if code.kernel is None else code.kernel, source_hash=code.hashes.source,
            profile=profiles[label], block=use.block,
            dynamic_shared_bytes=use.dynamic_shared_bytes, occupancy=code.occupancy.get(_shape(use)), grid=use.grid,
            symbol=code.symbol, cubin=code.hashes.cubin, config=use.config,
        )  # fmt: skip

    return _flat(part.tests, record_of)


def _known(codes: Mapping[str, _T], label: str, workload: str) -> _T:
    if label not in codes:
        raise BadContentError(
            f"the workload '{quoted(workload)}' has the code '{quoted(label)}', which is not in the file"
        )
    return codes[label]


# --- times ---------------------------------------------------------------------------------------


def _time_document(file: TimeFile) -> TimeDocument:
    users = [(_timed_code(user.record), user) for user in _in_order(file.tests)]
    labels = _labels((code.kernel or "", code, user) for code, user in users)
    codes = {label: _without_name(code, label) for code, label in labels.items()}

    def use_of(_: str, record: TimeRecord) -> TimeUse:
        return TimeUse(
            code=labels[_timed_code(record)], launch=record.identity.launch, timer=record.timer, cache=record.cache,
            rounds=_sessions(record.rounds), arguments=record.identity.arguments, block=record.block, grid=record.grid,
            dynamic_shared_bytes=record.dynamic_shared_bytes, bytes=record.bytes, flops=record.flops,
            counters=folded(record.counters), counter_ranges=record.counter_ranges,
            config=record.identity.config, beside=record.beside,
        )  # fmt: skip

    return TimeDocument(
        schema=file.schema, target=file.target, sessions=file.sessions, codes=codes, tests=_nested(file.tests, use_of)
    )


def _timed_code(record: TimeRecord) -> TimedCode:
    identity = record.identity
    return TimedCode(
        code=identity.code, source=identity.source, cubin=record.cubin, toolchain=identity.toolchain,
        kernel=record.kernel, symbol=record.symbol,
    )  # fmt: skip


def _without_name(code: TimedCode, label: str) -> TimedCode:
    """The kernel's name is left out where it is the label."""
    return msgspec.structs.replace(code, kernel=None) if code.kernel == label else code


def _sessions(rounds: Iterable[RecordedRound]) -> dict[str, SessionRounds]:
    by_session: dict[str, list[RecordedRound]] = {}
    for one in rounds:
        by_session.setdefault(one.session, []).append(one)
    return {session: _session(of) for session, of in by_session.items()}


def _session(rounds: list[RecordedRound]) -> SessionRounds:
    clocks = [one.sm_clock_mhz for one in rounds]
    alike = clocks[:1] if len(set(clocks)) == 1 else clocks
    return SessionRounds(midmeans=[one.midmean for one in rounds], sm_clock_mhz=None if alike == [None] else alike)


def _time_record(name: str, use: TimeUse, codes: Mapping[str, TimedCode], place: Mapping[str, int]) -> TimeRecord:
    code = _known(codes, use.code, name)
    identity = Identity(
        code=code.code, launch=use.launch, arguments=use.arguments, source=code.source, toolchain=code.toolchain,
        config=use.config,
    )  # fmt: skip
    return TimeRecord(
        identity=identity, timer=use.timer, cache=use.cache, rounds=tuple(_rounds(name, use.rounds, place)),
        kernel=use.code if code.kernel is None else code.kernel, symbol=code.symbol, cubin=code.cubin,
        grid=use.grid, block=use.block,
        dynamic_shared_bytes=use.dynamic_shared_bytes, bytes=use.bytes, flops=use.flops,
        counters=unfolded(use.counters), counter_ranges=use.counter_ranges,
        beside=use.beside,
    )  # fmt: skip


def _rounds(name: str, sessions: Mapping[str, SessionRounds], place: Mapping[str, int]) -> Iterable[RecordedRound]:
    """In the order of the file's sessions, oldest first; one of none of them comes last, for the checks to refuse."""
    for session, taken in sorted(sessions.items(), key=lambda item: place.get(item[0], len(place))):
        count, clocks = len(taken.midmeans), taken.sm_clock_mhz or [None]
        clocks = clocks * count if len(clocks) == 1 else clocks
        if len(clocks) != count:
            raise BadContentError(
                f"the workload '{quoted(name)}' has {count} rounds and {len(clocks)} clocks in session "
                f"'{quoted(session)}'"
            )
        for midmean, clock in zip(taken.midmeans, clocks, strict=True):
            yield RecordedRound(session=session, midmean=midmean, sm_clock_mhz=clock)
