"""The end of a run and its ledger: what is noted, and what all runs together prove."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from git_samples import commit
from record_samples import identity_of
from run_samples import H200, MODULE, TEST, Run, key, workload

from pytest_gpuperf.context import ledger_file
from pytest_gpuperf.context.book import Book
from pytest_gpuperf.model.ledger import LedgerLine, PairingNote
from pytest_gpuperf.model.result import Outcome, TestEvidence
from pytest_gpuperf.session.keep_ledger import add_up

OLD = "a0" * 32
NAME = str(key())


@pytest.fixture
def noting(run: Run) -> Run:
    return run.with_options(ledger="gate", ledger_tolerance=0.005, ledger_file=run.config.rootpath / "ledger.jsonl")


def note(seed: int, log_ratio: float = 0.0, opponent: str = OLD) -> PairingNote:
    return PairingNote(opponent=opponent, log_ratio=log_ratio, blocks=7, seed=seed)


def book(*notes: PairingNote, **fields: Any) -> Book:
    usual: dict[str, Any] = {"identity": identity_of("int32=7"), "notes": notes}
    test = TestEvidence(module=MODULE, test=TEST, workloads=(workload("copy", **{**usual, **fields}),), device=H200)
    return Book.merged([test], {}, 1)


def ended(run: Run, of: Book) -> tuple[bool, Outcome]:
    outcome = Outcome()
    return add_up(run.config, of, outcome), outcome


def lines(run: Run) -> list[LedgerLine]:
    return ledger_file.read(run.config.rootpath / "ledger.jsonl").lines


def runs(run: Run, log_ratio: float, number: int = 60, start: int = 0, **changes: Any) -> None:
    """As many runs before this one, each with a pairing."""
    line = LedgerLine(
        schema=1, date="2026-11-22T12:00:00Z", commit="c1" * 20, dirty=False, device=H200.slug, workload=NAME,
        candidate="c0" * 32, work="", note=note(0),
    )  # fmt: skip
    work = _work_of_the_samples(run)
    old = [
        msgspec.structs.replace(line, **{"work": work, "note": note(start + seed, log_ratio), **changes})
        for seed in range(number)
    ]
    ledger_file.append(run.config.rootpath / "ledger.jsonl", old)


def _work_of_the_samples(run: Run) -> str:
    path = run.config.rootpath / "other.jsonl"
    before = run.options.ledger_file
    run.with_options(ledger_file=path)
    ended(run, book(note(10**6)))
    run.with_options(ledger_file=before)
    found = ledger_file.read(path).lines[0].work
    path.unlink()
    return found


def test_each_pairing_is_a_line(noting: Run) -> None:
    root: Path = noting.config.rootpath
    (root / "a.py").touch()
    here = commit(root)
    assert ended(noting, book(note(1, 0.001), note(2, 0.002))) == (False, Outcome())
    first, second = lines(noting)
    assert first == LedgerLine(
        schema=1, date=first.date, commit=here, dirty=False, device=H200.slug, workload=NAME, candidate="c0" * 32,
        work=first.work, note=note(1, 0.001),
    )  # fmt: skip
    assert second.note == note(2, 0.002)
    assert first.date.endswith("Z")
    assert len(first.work) == 12
    ended(noting, book(note(3), identity=identity_of("int32=8")))
    assert lines(noting)[2].work != first.work  # other arguments are other work


def test_what_has_no_gpu_or_ran_nothing_is_no_line(noting: Run) -> None:
    ended(noting, book(note(1), identity=None))
    test = msgspec.structs.replace(book(note(1)).evidence[0], device=None)
    both = Book.merged([test, msgspec.structs.replace(book(note(2)).evidence[0], test="test_b")], {}, 2)
    ended(noting, both)
    assert [line.note.seed for line in lines(noting)] == [2]


@pytest.mark.parametrize("why", ["off", "gates nothing", "no pairing"])
def test_no_ledger_is_kept_where_it_is_not_asked_for_or_nothing_is_to_be_noted(noting: Run, why: str) -> None:
    if why == "off":
        noting.with_options(ledger="off")
    elif why == "gates nothing":
        noting.with_options(enabled=False)
    assert ended(noting, book(*([] if why == "no pairing" else [note(1)]))) == (False, Outcome())
    assert not (noting.config.rootpath / "ledger.jsonl").exists()


def test_many_runs_that_are_slower_fail_the_next(noting: Run) -> None:
    runs(noting, 0.02)
    red, outcome = ended(noting, book(note(1000, 0.02)))
    assert red
    head = f"{NAME} on nvidia-h200: x1.0202, slower than 0.50% by 61 votes together (E="
    assert outcome.drifted.startswith(head)
    evalue, _, rest = outcome.drifted.removeprefix(head).partition(")")
    assert float(evalue) > 100
    assert rest == ": what it was accepted as is faster"
    assert outcome.ledger == ()
    noting.with_options(ledger="note")
    red, outcome = ended(noting, book(note(1001, 0.02)))
    assert (red, outcome.drifted, len(outcome.ledger)) == (False, "", 1)


def test_a_huge_proof_is_a_number_still(noting: Run) -> None:
    runs(noting, 2.0, 3000)
    drifted = ended(noting, book(note(10000, 2.0)))[1].drifted
    assert "(E=1e+304)" in drifted


@pytest.mark.parametrize(
    ("commits", "told"),
    [
        (
            [f"{number:02}" * 20 for number in range(30)],
            "it drifts, x1.0202 by now, over 31 votes from 000000000000 to an unknown commit: "
            "gpuperf bisect finds a single step",
        ),
        ([""] * 30, "x1.0202 by 31 votes of an unknown commit: what it was accepted as is faster"),
    ],
)
def test_losses_of_one_candidate_after_the_other_are_a_drift(noting: Run, commits: list[str], told: str) -> None:
    for number, name in enumerate(commits):
        runs(noting, 0.02, 1, number, candidate=f"{number:02}" * 32, commit=name)
    red, outcome = ended(noting, book(note(1000, 0.02)))
    assert (red, outcome.drifted) == (True, f"{NAME} on nvidia-h200: {told}")


@pytest.mark.parametrize(
    "other", [{"device": "nvidia-a100"}, {"workload": "another"}, {"work": "0"}, {"note": note(5, 0.02, "b0" * 32)}]
)
def test_other_series_prove_nothing_of_this_one(noting: Run, other: dict[str, Any]) -> None:
    runs(noting, 0.02, **other)
    assert ended(noting, book(note(1000, 0.02))) == (False, Outcome())


def test_lines_that_could_not_be_read_are_counted(noting: Run) -> None:
    for number, text in (("1 line", "no\n"), ("2 lines", "{}\nno\n")):
        (noting.config.rootpath / "ledger.jsonl").write_text(text)
        red, outcome = ended(noting, book(note(1)))
        assert not red
        assert outcome.ledger == (f"{number} of the ledger could not be read: not counted",)


@pytest.mark.parametrize("asked", ["gate", "note"])
def test_a_ledger_that_cannot_be_kept_fails_where_it_was_to_gate(noting: Run, asked: str) -> None:
    (noting.config.rootpath / "folder").touch()
    noting.with_options(ledger=asked, ledger_file=noting.config.rootpath / "folder" / "ledger.jsonl")
    red, outcome = ended(noting, book(note(1)))
    assert red == (asked == "gate")
    told = outcome.drifted if red else "".join(outcome.ledger)
    assert "cannot be written" in told
