"""``--update-baselines``: decide what to record, record it in fresh processes, write it.

Rounds of one process say nothing about the next one, so times are recorded by child processes that this
module starts: each runs the selected tests again, in a shuffled order, and leaves its rounds in a file.
Only the reporting process writes baselines, once, at the end of the run.  A process that leaves no rounds is
replaced by a fresh one, so that it does not cost those of the others.
"""

from __future__ import annotations

import dataclasses
import json
import random
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.children import child_command, errors_in, keep
from pytest_gpuperf.evidence import DeviceFacts, Record, Session
from pytest_gpuperf.options import Options
from pytest_gpuperf.report.text import numbered
from pytest_gpuperf.session import Book, TestEvidence

if TYPE_CHECKING:
    from pytest_gpuperf.bench import Bench

SELECTION = "selection.json"
SPARE_PROCESSES = 2
"""How many fresh processes one update may start in place of those that left no rounds."""
LOG_LINES = 25

REPLACED: pytest.StashKey[tuple[str, ...]] = pytest.StashKey()
"""What became of the recording processes that were replaced, a line for each."""


class ProcessRecord(Record, frozen=True):
    """What one recording process found."""

    index: int
    session: Session
    device: DeviceFacts
    tests: tuple[TestEvidence, ...]
    """Of tests that passed."""
    failed: tuple[str, ...] = ()
    """Node ids of tests that did not."""
    cubins: dict[str, bytes] = msgspec.field(default_factory=dict)
    """By SHA-256."""


class RecordingFailed(Exception):
    """Recording processes ended without leaving rounds, more than may be replaced; nothing was written."""


@dataclasses.dataclass(frozen=True)
class LostProcess:
    """A recording process that left no rounds: it died, or none of its tests passed."""

    index: int
    status: int
    """Its exit status."""
    log: tuple[str, ...]
    """What it printed."""

    def __str__(self) -> str:
        return f"recording process {self.index + 1} left no rounds (pytest exit status {self.status})"

    @property
    def why(self) -> str:
        """The last error that pytest shows in its log, or its last line."""
        errors = errors_in(self.log)
        said = [line.strip() for line in self.log if line.strip()]
        return next(reversed(errors or said), "it printed nothing")


# --- in the child --------------------------------------------------------------------------------


def rounds_of_process(options: Options) -> int:
    """How many of an update's rounds this process takes: as even a share as there is."""
    share, rest = divmod(options.rounds, options.processes)
    return max(1, share + (options.record_index < rest))


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that the update names, in an order of this process's own."""
    options = config.stash[stash.OPTIONS]
    assert options.record_to is not None
    wanted = set(json.loads((options.record_to / SELECTION).read_text(encoding="utf-8")))
    keep(config, items, lambda item: item.nodeid in wanted)
    random.Random(options.record_index).shuffle(items)


def leave_rounds(bench: Bench, book: Book) -> None:
    """Write what this process found for the update that started it."""
    options = bench.options
    assert options.record_to is not None
    passed = tuple(book.accepted())
    if not any(evidence.device for evidence in passed):
        return
    record = ProcessRecord(
        index=options.record_index, session=bench.session, device=bench.device.facts, tests=passed,
        failed=tuple(node for node, result in book.results.items() if not result.passed), cubins=bench.cubins,
    )  # fmt: skip
    target = options.record_to / f"{options.record_index}.json"
    partial = target.with_suffix(".partial")
    partial.write_bytes(msgspec.json.encode(record))
    partial.replace(target)


# --- in the process that updates -----------------------------------------------------------------


def record(config: pytest.Config, node_ids: Sequence[str], progress: Callable[[str], None]) -> list[ProcessRecord]:
    """Run the named tests in fresh processes and return what each found; ``REPLACED`` tells of those that were lost.

    A process is lost only if it left no rounds at all: one failed test among others is no reason to take all again.
    Raises ``RecordingFailed`` if more are lost than may be replaced.
    """
    options = config.stash[stash.OPTIONS]
    records: list[ProcessRecord] = []
    lost: list[LostProcess] = []
    with tempfile.TemporaryDirectory(prefix="gpuperf-record-") as name:
        folder = Path(name)
        (folder / SELECTION).write_text(json.dumps(sorted(node_ids)), encoding="utf-8")
        for index in range(options.processes):
            progress(f"recording {numbered(len(node_ids), 'test')}, process {index + 1} of {options.processes}")
            while isinstance(found := _run_process(config, folder, index, node_ids), LostProcess):
                lost.append(found)
                if len(lost) > SPARE_PROCESSES:
                    raise RecordingFailed(_too_many(lost))
                which = f"process {index + 1} of {options.processes}"
                progress(f"{which} left no rounds, once more in a fresh process")
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


def _run_process(
    config: pytest.Config, folder: Path, index: int, node_ids: Sequence[str]
) -> ProcessRecord | LostProcess:
    log = folder / f"{index}.log"
    command = [*child_command(config, node_ids), f"--gpuperf-record-to={folder}", f"--gpuperf-record-index={index}"]
    with log.open("wb") as output:
        status = subprocess.run(command, cwd=config.rootpath, stdin=subprocess.DEVNULL, stdout=output,
                                stderr=subprocess.STDOUT, check=False).returncode  # fmt: skip
    left = folder / f"{index}.json"
    if not left.exists():
        return LostProcess(index, status, tuple(log.read_text(encoding="utf-8", errors="replace").splitlines()))
    return msgspec.json.decode(left.read_bytes(), type=ProcessRecord)
