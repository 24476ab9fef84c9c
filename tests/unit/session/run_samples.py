"""A run without pytest's machinery: a configuration, tests and what its process shares; test records are real."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from record_samples import profile_of

from pytest_gpuperf import run as product
from pytest_gpuperf import stash
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.device.discovery import nominal_facts
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.verdict import EvidenceKind, Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.results import Results, TestsFound

MODULE = "tests/test_copy.py"
TEST = "test_copy"
COMPILER = "nvrtc 13.0.88"


H200 = msgspec.structs.replace(nominal_facts("sm_90"), name="NVIDIA H200", slug="nvidia-h200", uuid="GPU-1")


def key(workload: str = "copy", test: str = TEST) -> Key:
    return Key(module=MODULE, test=test, workload=workload)


def judgement(
    verdict: Verdict, kind: EvidenceKind = "time", workload: str = "copy", reason: str = "", **more: Any
) -> Judgement:
    target = "sm_90" if kind == "static" else "nvidia-h200"
    return Judgement(key=key(workload), target=target, kind=kind, verdict=verdict, reason=reason, **more)


def static_record(code: str = "c0", kernel: str = "copy", cubin: str = "", **fields: Any) -> StaticRecord:
    profile = profile_of(code_hash=code * 32)
    return StaticRecord(kernel=kernel, source_hash="50" * 32, profile=profile, cubin=cubin, **fields)


def workload(name: str = "copy", *judgements: Judgement, **fields: Any) -> WorkloadEvidence:
    return WorkloadEvidence(key=key(name), judgements=judgements, **fields)


class FakeItem:
    """One test: what the plugin asks of pytest's item."""

    def __init__(self, config: Any, test: str = TEST) -> None:
        self.config = config
        self.nodeid = f"{MODULE}::{test}"
        self.stash = pytest.Stash()
        self.path = Path(__file__)
        self.location = (MODULE, 6, test)
        self.fixturenames = ["gpuperf"]
        self.user_properties: list[tuple[str, object]] = []


class Shared(product.Run):
    """What one process shares, with a GPU that a test gives it."""

    has_gpu: Any = True
    native_arch: Any = "sm_90"
    targets: Any = ("sm_90",)
    revision: Any = None
    opened: Any = None
    compile_cache: Any = object()
    device: Any = SimpleNamespace(facts=SimpleNamespace(slug="nvidia-h200", arch="sm_90"))


class Run:
    """One process of a run, and what it is asked to do."""

    def __init__(self, folder: Path, *, has_gpu: bool = True) -> None:
        self.options = Options(enabled=True, baselines=folder / "baselines")
        self.store = BaselineStore(self.options.baselines)
        self.config: Any = SimpleNamespace(
            stash=pytest.Stash(), rootpath=folder, option=SimpleNamespace(), args=[str(folder)],
            invocation_params=SimpleNamespace(args=("--gpuperf",), dir=folder),
            getoption=lambda name, default=None: default,
        )  # fmt: skip
        self.config.stash[stash.OPTIONS] = self.options
        self.config.stash[stash.SHARED] = stash.SharedFixtures()
        self.shared: Any = Shared(self.config, self.options)
        self.shared.has_gpu, self.shared.store = has_gpu, self.store
        self.shared.no_device = None if has_gpu else "no driver\nand more words"
        self.config.stash[stash.RUN] = self.shared

    def item(self, test: str = TEST) -> Any:
        return FakeItem(self.config, test)

    def session(self, status: int = 0) -> Any:
        return SimpleNamespace(config=self.config, exitstatus=pytest.ExitCode(status))

    def collected(self, *tests: str, **found: Any) -> Results:
        """It has met ``MODULE`` and chosen these tests of it; ``found`` is what else it found, or found in place."""
        nodes = frozenset(f"{MODULE}::{test}" for test in tests)
        finding = self.shared.results
        finding.found = TestsFound(**{"tests": nodes, "selected": nodes, "modules": frozenset({MODULE}), **found})
        (self.config.rootpath / MODULE).parent.mkdir(exist_ok=True)
        (self.config.rootpath / MODULE).touch()
        return finding

    def with_options(self, **changes: Any) -> Run:
        """The same process, asked for something else."""
        self.options = Options(**{**vars(self.options), **changes})
        self.shared.options = self.config.stash[stash.OPTIONS] = self.options
        return self
