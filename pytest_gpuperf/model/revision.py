"""Another revision as an opponent: what its tests were found to run, and what kept some of them from it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.device_facts import DeviceFacts
from pytest_gpuperf.model.evidence import CacheMode, Identity, Key, is_below
from pytest_gpuperf.model.result import TestEvidence

REVISION_FILE = "revision.json"
FOUND_FILE = "found.json"
"""In the folder of the process that runs its tests: what it found."""
EVIDENCE = ".evidence"
"""Ending of the folder beside a worktree that has the evidence of its tests; its next run replaces it."""


class UntimedWork(Record, frozen=True):
    """What would run, where no GPU runs it."""

    identity: Identity
    cache: CacheMode


class Revision(Record, frozen=True):
    """What a run has to know of the revision that it compares with, beside its evidence."""

    commit: str
    """In full."""
    name: str
    """For people: ``3f9a2c1b04de (2026-11-20, Unroll the inner loop)``."""
    archs: tuple[str, ...]
    """Architectures that its machine code was made for."""
    lacking: dict[str, str] = msgspec.field(default_factory=dict)
    """Tests and files that left no evidence, or not all of it, by node id: ``its test failed there: ...``."""
    top: Path = Path()
    """Of the working tree that is compared with it."""
    others: tuple[Path, ...] = ()
    """Working trees of the repository of which its process may use nothing."""
    tree: Path = Path()
    """The worktree that it is checked out in, for as long as the run lasts."""
    untimed: dict[str, UntimedWork] = msgspec.field(default_factory=dict)
    """What would run of its workloads where there is no GPU, by ``str`` of their keys."""
    collected: frozenset[str] = frozenset()
    """Test files that its own run collected, as in node ids."""
    root: Path = Path()
    """pytest's in ``tree``."""
    by_name: bool = False
    """The run chose tests by their names, so that those of other names did not run there."""

    def launched_by(self, module: str, test: str) -> list[str]:
        """Names of the workloads that this test would run there on a GPU."""
        start = f"{module}::{test} ["
        return [key.removeprefix(start).removesuffix("]") for key in self.untimed if key.startswith(start)]

    def why_lacking(self, key: Key) -> str:
        """Why the revision has no evidence of a workload that it may well have; empty if nothing speaks for that."""
        if key.node_id in self.lacking:
            return self.lacking[key.node_id]
        return next((why for place, why in self.lacking.items() if is_below(key.node_id, place)), "")


class RevisionFound(Record, frozen=True):
    """What the process found that ran the tests of a revision."""

    tests: tuple[TestEvidence, ...]
    lacking: dict[str, str]
    failed: frozenset[str]
    """Node ids of tests that failed: what they ran is known, and not whether it is right."""
    device: DeviceFacts | None
    foreign: tuple[str, ...] = ()
    """Modules, libraries and files of another working tree that it used, a line each."""
    collected: frozenset[str] = frozenset()
    """Test files, as in node ids."""


def read_revision(folder: Path) -> Revision | None:
    """What ``folder`` says of the revision whose evidence it holds; None of a folder of baselines."""
    try:
        return msgspec.json.decode(
            (folder / REVISION_FILE).read_bytes(), type=Revision, dec_hook=lambda _, text: Path(text)
        )
    except (OSError, msgspec.DecodeError):
        return None
