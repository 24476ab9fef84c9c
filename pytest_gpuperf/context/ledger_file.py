"""The ledger: a file of JSON lines that runs append to, by default ``.gpuperf/ledger.jsonl`` below pytest's root.

A line is written at once, under a lock beside the file.  What a kill left of one is passed over, and so is what is no
line of a ledger: it is evidence that is lacking, never a verdict.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import filelock
import msgspec

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.context.last_run import FOLDER, make_folder
from pytest_gpuperf.model.ledger import LedgerLine

SCHEMA = 1
FILE = "ledger.jsonl"
MOST_BYTES = 32 << 20
"""A larger ledger is cut to its newer half."""
MOST_LINE_BYTES = 1 << 14
WAIT_S = 60.0


class LedgerError(Exception):
    """The ledger cannot be read or written; the message says what to do."""


class Ledger(NamedTuple):
    """What a file has."""

    lines: list[LedgerLine]
    """In their order, none of them twice."""
    passed_over: int
    """Lines that are no lines of a ledger of this schema."""


def path_of(given: Path | None, root: Path) -> Path:
    """The file that was asked for, or the usual one."""
    return root / FOLDER / FILE if given is None else given


def append(path: Path, lines: Iterable[LedgerLine]) -> Ledger:
    """Add lines, and read all that there is then.  Raises ``LedgerError``."""
    new = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent.name == FOLDER:
            _refuse_links(path.parent, path)
            make_folder(path.parent)
        with filelock.FileLock(path.with_suffix(".lock"), timeout=WAIT_S):
            _append(path, new)
            return read(path)
    except filelock.Timeout:
        raise LedgerError(
            f"{path}: another run has held it for {WAIT_S:g} s: wait for its end, and run again"
        ) from None
    except OSError as problem:
        raise LedgerError(
            f"{path} cannot be written ({problem.strerror or problem}): name another file with --gpuperf-ledger-file, "
            "or leave it out with --gpuperf-ledger=off"
        ) from None


def read(path: Path) -> Ledger:
    """What the file has; nothing if there is none.  Raises ``OSError``."""
    if not path.exists():
        return Ledger([], 0)
    found: dict[tuple[str, str, int], LedgerLine] = {}
    passed_over = 0
    with path.open("rb") as file:
        for text in file.read(2 * MOST_BYTES).splitlines():
            line = _line(text)
            if line is None:
                passed_over += 1
            else:
                found.setdefault((line.workload, line.note.opponent, line.note.seed), line)
    return Ledger(list(found.values()), passed_over)


def _line(text: bytes) -> LedgerLine | None:
    if len(text) > MOST_LINE_BYTES:
        return None
    try:
        line = msgspec.json.decode(text, type=LedgerLine)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return line if line.schema == SCHEMA and abs(line.note.log_ratio) < 20 else None


def _refuse_links(*paths: Path) -> None:
    """Raise ``LedgerError`` for a link where this plugin makes none: a repository may have brought it along."""
    for path in paths:
        if path.is_symlink():
            raise LedgerError(
                f"{path} is a link, and nothing is written through it: remove it, or name another file with "
                "--gpuperf-ledger-file"
            )


def _append(path: Path, new: bytes) -> None:
    if path.exists() and path.stat().st_size + len(new) > MOST_BYTES:
        _, _, whole_lines = path.read_bytes()[-MOST_BYTES // 2 :].partition(b"\n")
        write_whole(path, whole_lines)
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        size = os.fstat(handle).st_size
        torn = size and os.pread(handle, 1, size - 1) != b"\n"
        os.write(handle, (b"\n" if torn else b"") + new)
    finally:
        os.close(handle)
