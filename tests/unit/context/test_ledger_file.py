"""The ledger's file: nothing is lost or counted twice, and what is no line of it does no harm."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from pytest_gpuperf.context import ledger_file
from pytest_gpuperf.context.ledger_file import LedgerError, append, path_of, read
from pytest_gpuperf.model.ledger import LedgerLine, PairingNote


def line(seed: int, *, schema: int = ledger_file.SCHEMA, log_ratio: float = 0.001) -> LedgerLine:
    return LedgerLine(
        schema=schema, date="2026-11-23T10:00:00Z", commit="c", dirty=False, device="nvidia-h200", workload="a::b [w]",
        candidate="new", work="1", note=PairingNote(opponent="old", log_ratio=log_ratio, blocks=11, seed=seed),
    )  # fmt: skip


def seeds(path: Path) -> list[int]:
    return [one.note.seed for one in read(path).lines]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return path_of(None, tmp_path)


def test_runs_add_up_and_git_ignores_the_file(path: Path) -> None:
    assert read(path).lines == []
    append(path, [line(1), line(2)])
    assert [one.note.seed for one in append(path, [line(3)]).lines] == [1, 2, 3]
    assert (path.parent / ".gitignore").read_text() == "*\n"


def test_the_same_pairing_counts_once(path: Path) -> None:
    append(path, [line(1)])
    append(path, [line(1), line(2)])
    assert seeds(path) == [1, 2]


def test_a_torn_line_costs_itself_alone(path: Path) -> None:
    append(path, [line(1)])
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line(2))[:40])
    append(path, [line(3)])
    assert seeds(path) == [1, 3]
    assert read(path).passed_over == 1


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b"{}", b"[1]", b'{"schema": 1}', b"x" * 100_000, msgspec.json.encode(line(9, schema=99)),
     msgspec.json.encode(line(9, log_ratio=1e300))],
)  # fmt: skip
def test_what_is_no_line_is_passed_over(path: Path, content: bytes) -> None:
    append(path, [line(1)])
    with path.open("ab") as file:
        file.write(content + b"\n")
    append(path, [line(2)])
    assert (seeds(path), read(path).passed_over) == ([1, 2], 1)


def test_runs_at_once_lose_nothing(path: Path) -> None:
    threads = [
        threading.Thread(target=lambda number=number: append(path, [line(number * 100 + one) for one in range(20)]))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seeds(path)) == 160


def test_a_ledger_that_grows_too_large_keeps_its_newer_half(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_file, "MOST_BYTES", 4096)
    for seed in range(40):
        append(path, [line(seed)])
    assert path.stat().st_size <= 4096
    assert seeds(path) == list(range(seeds(path)[0], 40))


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_file_that_is_too_large_and_is_no_ledger_is_begun_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    monkeypatch.setattr(ledger_file, "MOST_BYTES", 4096)
    append(path, [line(1)])
    path.write_bytes(path.read_bytes() + b"x" * 8192 + end)
    assert [one.note.seed for one in append(path, [line(2)]).lines] == seeds(path) == [2]
    assert path.stat().st_size < 1024


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="--gpuperf-ledger-file"):
        append(tmp_path / "file" / "ledger.jsonl", [line(1)])


@pytest.mark.parametrize("place", [".gpuperf", ".gpuperf/ledger.jsonl", ".gpuperf/ledger.lock", ".gpuperf/.gitignore"])
def test_nothing_is_written_through_a_link_that_a_repository_brings(path: Path, tmp_path: Path, place: str) -> None:
    """In the place of the ignore file it is left as it is; elsewhere it is refused."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text("precious")
    link = tmp_path / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside if place == ".gpuperf" else outside / "victim")
    if place.endswith(".gitignore"):
        append(path, [line(1)])
    else:
        with pytest.raises(LedgerError, match=r"--gpuperf-ledger"):
            append(path, [line(1)])
    assert [file.name for file in outside.iterdir()] == ["victim"]
    assert (outside / "victim").read_text() == "precious"
