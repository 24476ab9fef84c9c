"""The record of one test: its kernels, its workloads and its end; and the exceptions that may end it.

A kernel that the test launches is judged as its workload.  One that is only compiled is a workload of its own, under
its name or a label that distinguishes it from others of that name.  A kernel of a fixture that several tests share
belongs to the tests that launch it, and to each test that uses the fixture and hands no launch to ``gpuperf``.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import pytest

from pytest_gpuperf.device.device_errors import DeviceNeeded
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import Status, WorkloadEvidence
from pytest_gpuperf.model.verdict import Advice, Judgement

if TYPE_CHECKING:
    from pytest_gpuperf.judge.time_verdict import Suspect


class PerformanceRegression(pytest.fail.Exception):  # type: ignore[misc,name-defined]
    """The gate fails the test; the message is the report of what got worse, and no traceback is shown.

    ``@pytest.mark.xfail(raises=PerformanceRegression)`` expects it, and nothing else that may go wrong in the test.
    """

    __module__ = "builtins"  # as of pytest's own failures: messages name it without a path

    def __init__(self, message: str) -> None:
        super().__init__(message, pytrace=False)


class StaticOnly(DeviceNeeded):
    """The test reached its first need for a GPU; its static evidence stands."""


class CheckedOnly(Exception):
    """The test wanted a time in a run that takes none; its checks have passed."""


class CountersMissing(CheckedOnly, LookupError):
    """The test wanted counters in a run that has none of this workload; the message says why and what to do.

    A test that does not catch it ends as *checked only*: a run without counters proves nothing against it.
    """


class DuplicateWorkload(ValueError):
    """One test used a workload name twice."""


class TestOver(RuntimeError):
    """A kernel or a workload after its test's end, when nothing is judged any more."""

    __test__ = False


@dataclasses.dataclass(frozen=True)
class UnlaunchedKernel:
    """A kernel that is a workload of its own until a workload launches it."""

    name: str
    static: Mapping[str, StaticRecord]
    """By architecture."""
    toolchain: str
    options: tuple[str, ...] = ()
    """Compiler options as the test gave them, and whatever else it gave that tells kernels of one text apart."""
    file: str = ""
    """Name of the source's or cubin's file; empty for text in the test."""

    def is_another(self, static: Mapping[str, StaticRecord], toolchain: str) -> bool:
        """Whether ``static``, by architecture, is of another kernel."""
        return self.toolchain != toolchain or any(
            arch in self.static and not _is_same_code(self.static[arch], record) for arch, record in static.items()
        )

    def is_launched_by(self, workload: WorkloadEvidence) -> bool:
        """Whether a workload launches this kernel, so that its evidence is the kernel's own."""
        same_name = any(record.kernel == self.name for record in workload.static.values())
        return same_name and not self.is_another(workload.static, workload.toolchain)


class TestRecord:
    """The kernels and workloads of one test so far; also those of a fixture that tests share."""

    __test__ = False

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id
        self.module, _, self.test = node_id.partition("::")
        self.workloads: dict[str, WorkloadEvidence] = {}
        self.kernels: list[UnlaunchedKernel] = []
        """Every kernel that the test compiled so far, in order."""
        self.shared_kernels: list[UnlaunchedKernel] = []
        """Those of fixtures that it shares with others; known at its end."""
        self.cubins: dict[str, bytes] = {}
        """Machine code of these kernels, by SHA-256."""
        self.unrecorded: set[str] = set()
        """SHA-256 of machine code that no baseline of this test holds."""
        self.status: Status = "complete"
        self.reason = ""
        self.red_signature, self.severity = "", 1.0
        """Key of similar failures of the gate, and the largest ratio of times."""
        self.ended_in: Literal["", "setup", "call"] = ""
        """The phase that ended the test; empty while it runs."""
        self.compares = False
        """Whether it compares workloads with one another: its kernels then need no baseline."""
        self.whole = True
        """Whether nothing ended it early, nor a subtest of it, so far."""
        self.suspects: list[Suspect] = []
        """Losses that wait for a second process, at its end."""
        self.failed_measurement: BaseException | None = None
        """The first exception of a measurement: it fails the test even if the test caught it, or a thread did."""

    @property
    def judgements(self) -> list[Judgement]:
        return [judgement for workload in self.workloads.values() for judgement in workload.judgements]

    @property
    def advice(self) -> dict[Key, tuple[Advice, ...]]:
        """Causes of what changed, by workload."""
        return {work.key: work.advice for work in self.workloads.values() if work.advice}

    def key(self, workload: str) -> Key:
        return Key(module=self.module, test=self.test, workload=workload)

    def note_failure(self, problem: BaseException) -> None:
        """Keep the exception of a measurement: the test neither passes nor is recorded."""
        if self.failed_measurement is None and not isinstance(problem, CheckedOnly | DeviceNeeded):
            self.failed_measurement = problem

    def stop(self, status: Status, reason: str) -> None:
        """Note that the test did not get to see all there is to see."""
        self.status, self.reason = status, reason

    def add_compiled(
        self, name: str, static: Mapping[str, StaticRecord], toolchain: str, options: Sequence[str], file: str
    ) -> None:
        """Note a kernel; until a workload launches it, it is a workload of its own.  Raises ``TestOver``."""
        self._require_open(f"the kernel {name}")
        known = next((kernel for kernel in reversed(self.kernels) if kernel.name == name), None)
        if known is not None and not known.is_another(static, toolchain):
            self.kernels.remove(known)
            static, options, file = {**known.static, **static}, known.options, known.file
        self.kernels.append(UnlaunchedKernel(name, dict(static), toolchain, tuple(options), file))

    def open(self, workload: str) -> Key:
        """Reserve a workload name.  Raises ``DuplicateWorkload`` and ``TestOver``."""
        self._require_open(f"the workload {workload!r}")
        if workload in self.workloads:
            raise DuplicateWorkload(
                f"{self.node_id}: the workload name {workload!r} is used twice; give each its own: gpuperf(..., "
                "name='...'). Where @given or a plugin runs the body several times: @pytest.mark.parametrize instead"
            )
        evidence = self.workloads[workload] = WorkloadEvidence(key=self.key(workload))
        return evidence.key

    def _require_open(self, what: str) -> None:
        if self.ended_in:
            raise TestOver(
                f"{self.node_id}: {what} comes after the end of the test and cannot be judged: "
                "ask for it in the test, or in a fixture before its yield"
            )

    def add(self, evidence: WorkloadEvidence) -> None:
        self.workloads[evidence.key.workload] = evidence

    def drop_own_kernels(self) -> None:
        """Leave the kernels of callables to the test's own evidence where it has compiled or launched them itself."""
        own = [one.static for one in (*self.kernels, *self.shared_kernels)]
        own += [work.static for work in self.workloads.values() if not work.is_captured]
        codes = {record.profile.code_hash for static in own for record in static.values()}
        for name, work in list(self.workloads.items()):
            if work.is_captured and any(record.profile.code_hash in codes for record in work.static.values()):
                del self.workloads[name]

    def unlaunched(self) -> list[WorkloadEvidence]:
        """Kernels that were compiled but belong to no workload; labels distinguish several of one name."""
        launches = any(
            work.launched and work.static and not work.is_captured for work in self.workloads.values()
        )  # a callable hides its kernels
        kernels = self.kernels if launches else [*self.shared_kernels, *self.kernels]
        alone = [one for one in kernels if not any(map(one.is_launched_by, self.workloads.values()))]
        return [
            WorkloadEvidence(key=self.key(name), static=dict(one.static), toolchain=one.toolchain, launched=False)
            for name, one in labelled(alone, kernels, self.workloads)
        ]


def labelled(
    kernels: Iterable[UnlaunchedKernel], among: Sequence[UnlaunchedKernel], taken: Collection[str]
) -> Iterator[tuple[str, UnlaunchedKernel]]:
    """Each kernel with its name, or with one that says what only it has ``among`` those of its name.

    ``work [-DTILE=32]``, ``work [tiled.cu]``: names that are not ``taken``, each once; ``work [kernel]`` where a
    workload has the name, and ``work [2]`` where nothing but the text tells two apart.
    """
    names = set(taken)
    seen: list[UnlaunchedKernel] = []
    for kernel in kernels:
        if any(_are_the_same(kernel, other) for other in seen):
            continue
        seen.append(kernel)
        others = [one for one in among if one.name == kernel.name and not _are_the_same(one, kernel)]
        label = _label(kernel, others, is_taken=kernel.name in taken)
        numbered = (f"{label} [{number}]" for number in itertools.count(2))
        name = next(one for one in itertools.chain([label], numbered) if one not in names)
        names.add(name)
        yield name, kernel


def _label(kernel: UnlaunchedKernel, others: Sequence[UnlaunchedKernel], *, is_taken: bool) -> str:
    """The plainest name that tells a kernel from others of its name."""
    everywhere = set(kernel.options).intersection(*(one.options for one in others))
    own = [option for option in kernel.options if option not in everywhere]
    if kernel.file and any(one.file != kernel.file for one in others):
        own.insert(0, kernel.file)
    if own:
        return f"{kernel.name} [{' '.join(own)}]"
    return f"{kernel.name} [kernel]" if is_taken else kernel.name


def _are_the_same(one: UnlaunchedKernel, other: UnlaunchedKernel) -> bool:
    of_one_name = one.name == other.name and one.static.keys() == other.static.keys()
    return of_one_name and not one.is_another(other.static, other.toolchain)


def _is_same_code(one: StaticRecord, other: StaticRecord) -> bool:
    """Whether they are one kernel: of the same machine code, or of the same source, which may compile to several."""
    same_source = bool(one.source_hash) and one.source_hash == other.source_hash
    return same_source or one.profile.code_hash == other.profile.code_hash
