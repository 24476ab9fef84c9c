"""The times of an update, recorded in fresh processes.

Rounds of one process say nothing about the next one, so children take them: each runs the selected tests again, in a
shuffled order, and leaves its rounds in a file.  One that leaves none is replaced, so that it does not cost the rounds
of the others; workloads that it left disturbed are taken again in another one.  The first half of this module runs in
the child, the second in the process that updates.
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from pytest_gpuperf.atomic_write import scratch_folder, write_whole
from pytest_gpuperf.config.options import Options
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.book import Book
from pytest_gpuperf.context.child_process import LOG_LINES, errors_in, log_lines, run_task
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.formatting import numbered, remaining
from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.device_facts import DeviceFacts
from pytest_gpuperf.model.evidence import Key, Session
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.task import RecordTask
from pytest_gpuperf.update.retake import disturbed_in, with_fit_rounds

SPARE_PROCESSES = 2
"""How many fresh processes one update may start in place of those that left no rounds."""
FRESH_TAKES = 2
"""How many fresh processes may take again what one recording process left disturbed, and how many an update starts in
which all of that is disturbed again: then the machine is, and more of them would tell nothing new."""
START_LIMIT_S = 720.0
"""Bound of a recording process, its wait for the GPU of ten minutes included, besides what its tests may take."""
LIMIT_FACTOR = 5.0
"""By so much longer than in the run that updates its tests may take."""
REPLACED: pytest.StashKey[tuple[str, ...]] = pytest.StashKey()
"""What became of the recording processes that were replaced, a line for each."""


class ProcessRecord(Record, frozen=True):
    """What one recording process found."""

    index: int
    session: Session
    device: DeviceFacts
    tests: tuple[TestEvidence, ...]
    """Of tests that passed."""
    failures: dict[str, str] = msgspec.field(default_factory=dict)
    """By the node id of a test that failed: why, in a line."""
    cubins: dict[str, bytes] = msgspec.field(default_factory=dict)
    """By SHA-256."""


def by_workload(records: Iterable[ProcessRecord]) -> Mapping[Key, Sequence[WorkloadEvidence]]:
    """What the processes found of each workload, in their order."""
    found: dict[Key, list[WorkloadEvidence]] = defaultdict(list)
    for record in records:
        for test in record.tests:
            for work in test.workloads:
                found[work.key].append(work)
    return dict(found)


class RecordingFailed(Exception):
    """Recording processes ended without leaving rounds, more than may be replaced; nothing was written."""


@dataclasses.dataclass(frozen=True)
class LostProcess:
    """A recording process that left no rounds: it died, hung, or none of its tests passed."""

    index: int
    end: str
    """How it came to its end."""
    log: tuple[str, ...]
    """What it printed."""

    def __str__(self) -> str:
        return f"recording process {self.index + 1} left no rounds ({self.end})"

    @property
    def why(self) -> str:
        """The last error that pytest shows in its log, or its last line."""
        said = [line.strip() for line in self.log if line.strip()]
        return next(reversed(errors_in(self.log) or said), "it printed nothing")


# --- in the child --------------------------------------------------------------------------------


def leave_rounds(worker: Worker, book: Book, task: RecordTask, cubins: dict[str, bytes]) -> None:
    """Write what this process found for the update that started it."""
    passed = tuple(book.accepted())
    if any(evidence.device for evidence in passed):
        found = ProcessRecord(index=task.index, session=worker.session, device=worker.device.facts, tests=passed,
                              failures=dict(book.failures), cubins=cubins)  # fmt: skip
        write_whole(task.folder / f"{task.index}.json", msgspec.json.encode(found))


# --- in the process that updates -----------------------------------------------------------------


def record(
    config: pytest.Config, keys: Collection[Key], progress: Callable[[str], None], *, took_s: float
) -> list[ProcessRecord]:
    """Run the tests of these workloads in fresh processes: what each found; ``REPLACED`` tells of those that were lost.

    What a process left disturbed of ``keys`` is taken again in a fresh one, unless such updates are forced.
    ``took_s`` is what these tests took in this process: one that takes many times as long hangs, and is ended.
    A process is lost only if it left no rounds at all: one failed test among others is no reason to take all again.
    Raises ``RecordingFailed`` if more are lost than may be replaced.
    """
    options = config.stash[stash.OPTIONS]
    node_ids = sorted({key.node_id for key in keys})
    limit_s = START_LIMIT_S + LIMIT_FACTOR * took_s
    in_vain = FRESH_TAKES if options.force_update else 0
    records: list[ProcessRecord] = []
    lost: list[LostProcess] = []
    begun = time.monotonic()
    with scratch_folder("gpuperf-record-") as name:
        folder = Path(name)
        for index in range(options.processes):
            each_s = (time.monotonic() - begun) / index if index else took_s
            left = remaining(each_s * (options.processes - index))
            progress(f"recording {numbered(len(node_ids), 'test')}, process {index + 1} of {options.processes}{left}")
            task = RecordTask(folder=folder, nodes=tuple(node_ids), index=index, processes=options.processes,
                              rounds=rounds_of(options, index))  # fmt: skip
            while isinstance(found := _run_process(config, task, limit_s), LostProcess):
                lost.append(found)
                if len(lost) > SPARE_PROCESSES:
                    raise RecordingFailed(_too_many(lost))
                which = f"process {index + 1} of {options.processes}"
                progress(f"{which} left no rounds, once more in a fresh process")
            which = f"process {index + 1} of {options.processes}"
            for _ in range(FRESH_TAKES):
                disturbed = disturbed_in(found.tests, keys)
                if not disturbed or in_vain >= FRESH_TAKES:
                    break
                progress(f"{numbered(len(disturbed), 'workload')} of {which} disturbed, once more in a fresh process")
                found = _taken_again(config, task, found, disturbed, limit_s)
                in_vain += disturbed_in(found.tests, keys) == disturbed
            records.append(found)
    config.stash[REPLACED] = tuple(f"{one} and was replaced by a fresh one: {one.why}" for one in lost)
    return records


def _too_many(lost: Sequence[LostProcess]) -> str:
    last = lost[-1]
    before = "\n".join(f"  {one}: {one.why}" for one in lost[:-1])
    tail = "\n".join(last.log[-LOG_LINES:])
    return (
        f"{last}; no time baseline was written. An update replaces {SPARE_PROCESSES} processes at most, and had "
        f"replaced:\n{before}\nThe last lines of the last one:\n{tail}"
    )


def rounds_of(options: Options, index: int) -> int:
    """How many of an update's rounds the process ``index`` takes: as even a share as there is."""
    share, rest = divmod(options.rounds, options.processes)
    return max(1, share + (index < rest))


def _taken_again(
    config: pytest.Config, task: RecordTask, found: ProcessRecord, disturbed: Sequence[Key], limit_s: float
) -> ProcessRecord:
    """What was found, with undisturbed rounds of a fresh process as far as that has some."""
    nodes = tuple(sorted({key.node_id for key in disturbed}))
    again = _run_process(config, msgspec.structs.replace(task, nodes=nodes), limit_s)
    if isinstance(again, LostProcess):
        return found
    tests, cubins = with_fit_rounds(found.tests, again.tests), {**again.cubins, **found.cubins}
    return msgspec.structs.replace(found, tests=tests, cubins=cubins)


def _run_process(config: pytest.Config, task: RecordTask, limit_s: float) -> ProcessRecord | LostProcess:
    log = task.folder / f"{task.index}.log"
    its_own = Path(tempfile.mkdtemp(prefix=f"{task.index}-", dir=task.folder))  # after a lost one: nothing of it
    left = task.folder / f"{task.index}.json"
    left.unlink(missing_ok=True)
    status = run_task(config, task, its_own, log, limit_s)
    if not left.exists():
        end = f"it was not done after {limit_s:.0f} s" if status is None else f"pytest exit status {status}"
        return LostProcess(task.index, end, tuple(log_lines(log)))
    return msgspec.json.decode(left.read_bytes(), type=ProcessRecord)
