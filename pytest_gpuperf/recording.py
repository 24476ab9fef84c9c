"""``--update-baselines``: decide what to record, record it in fresh processes, write it.

Rounds of one process say nothing about the next one, so times are recorded by child processes that this
module starts: each runs the selected tests again, in a shuffled order, and leaves its rounds in a file.
Only the reporting process writes baselines, once, at the end of the run.
"""

from __future__ import annotations

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
from pytest_gpuperf.children import child_command, keep
from pytest_gpuperf.evidence import DeviceFacts, Record, Session
from pytest_gpuperf.options import Options
from pytest_gpuperf.session import Book, TestEvidence

if TYPE_CHECKING:
    from pytest_gpuperf.bench import Bench

SELECTION = "selection.json"


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
    """A recording process ended without leaving its rounds; nothing was written."""


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
    """Run the named tests in fresh processes and return what each found.  Raises ``RecordingFailed``."""
    options = config.stash[stash.OPTIONS]
    records = []
    with tempfile.TemporaryDirectory(prefix="gpuperf-record-") as name:
        folder = Path(name)
        (folder / SELECTION).write_text(json.dumps(sorted(node_ids)), encoding="utf-8")
        for index in range(options.processes):
            progress(f"recording {len(node_ids)} tests, process {index + 1} of {options.processes}")
            records.append(_run_process(config, folder, index, node_ids))
    return records


def _run_process(config: pytest.Config, folder: Path, index: int, node_ids: Sequence[str]) -> ProcessRecord:
    log = folder / f"{index}.log"
    command = [*child_command(config, node_ids), f"--gpuperf-record-to={folder}", f"--gpuperf-record-index={index}"]
    with log.open("wb") as output:
        status = subprocess.run(command, cwd=config.rootpath, stdin=subprocess.DEVNULL, stdout=output,
                                stderr=subprocess.STDOUT, check=False).returncode  # fmt: skip
    left = folder / f"{index}.json"
    if not left.exists():
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-25:])
        raise RecordingFailed(
            f"recording process {index + 1} left no rounds (pytest exit status {status}); no time baseline was "
            f"written. Its last lines:\n{tail}"
        )
    return msgspec.json.decode(left.read_bytes(), type=ProcessRecord)
