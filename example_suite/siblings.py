"""Turning optimised workloads into their naive siblings, to see whether the gate notices.

    pytest --gpuperf example_suite --naive-siblings --siblings-to turned.json
    python example_suite/siblings_report.py --from turned.json --output docs/results/siblings.md

Of each pair (``pairs.py``) the test then measures the naive workload, with its kernel, launch and check, under the
optimised one's name, so that it is held against the optimised one's baseline, or, with ``--gpuperf-against=HEAD``,
against that of the commit.  Nothing else is measured, and a test ends where it first looks at what it measured: its
claims are about another run.  What turns red is the gate's doing.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pairs import PAIRS, Pair

from pytest_gpuperf.device.device_errors import DeviceNeeded
from pytest_gpuperf.model.task import RevisionTask, read_task

ALL = "all"
FOR_CHILDREN = "EXAMPLE_SUITE_NAIVE_SIBLINGS"
"""Environment variable by which a confirming process, which pytest-gpuperf starts, turns the same workloads."""


def choose(given: Sequence[str]) -> tuple[Pair, ...]:
    """Pairs by ``all``, by family or by ``family:optimised``.  Raises ``pytest.UsageError`` for what is none."""
    chosen: dict[Pair, None] = {}
    for text in given:
        family, _, optimised = text.partition(":")
        found = [pair for pair in PAIRS if text == ALL or (pair.family == family and optimised in ("", pair.optimised))]
        if not found:
            known = {pair.family for pair in PAIRS} | {f"{pair.family}:{pair.optimised}" for pair in PAIRS}
            close = ", ".join(difflib.get_close_matches(text, known, n=3)) or "see example_suite/pairs.py"
            raise pytest.UsageError(
                f"--naive-siblings={text}: there is no such family, nor a family's optimised workload: {close}"
            )
        chosen.update(dict.fromkeys(found))
    return tuple(chosen)


class LookedAt(Exception):
    """The test came to what it would do with its measurements."""


class Unseen:
    """In place of a measurement: whatever is asked of it ends the test."""

    def __getattr__(self, name: str) -> Any:
        raise LookedAt(name)


class NaiveSiblings:
    """In place of ``gpuperf``: keeps what it is asked to measure, and measures the naive ones in the end."""

    def __init__(self, gpuperf: Callable[..., Any], pairs: Iterable[Pair]) -> None:
        self._gpuperf = gpuperf
        self._pairs = tuple(pairs)
        self._asked: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {}

    def __call__(self, workload: Callable[[], Any], *, name: str | None = None, **how: Any) -> Unseen:
        kernel = getattr(workload, "kernel", None)
        own = getattr(workload, "__name__", "workload") if kernel is None else kernel.name
        self._asked[name or own] = (workload, how)
        return Unseen()

    def measure(self) -> None:
        """Measure each naive workload in the place of the optimised one; nothing where one of them is not there."""
        for pair in self._pairs:
            if pair.optimised in self._asked and pair.naive in self._asked:
                workload, how = self._asked[pair.naive]
                in_place_of, _ = self._asked[pair.optimised]
                self._gpuperf(_of_one_kind(workload, in_place_of), name=pair.optimised, **how)


def _of_one_kind(workload: Callable[[], Any], in_place_of: Callable[[], Any]) -> Callable[[], Any]:
    """A launch in the place of a function that launches several kernels is a function, too."""
    if hasattr(in_place_of, "kernel") or not hasattr(workload, "kernel"):
        return workload
    return lambda: workload()


class Turning:
    """The hooks of a run that turns pairs: only their tests run, and what became of them goes to a file."""

    def __init__(self, pairs: Sequence[Pair], file: Path | None) -> None:
        self._pairs = {pair: dict[str, Any](outcome="not run", judgements=[]) for pair in pairs}
        self._file = file

    def of(self, node_id: str) -> list[Pair]:
        """The pairs that a test measures."""
        path, _, test = node_id.partition("::")
        return [pair for pair in self._pairs if (pair.module, pair.test) == (Path(path).name, test)]

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        dropped = [item for item in items if not self.of(item.nodeid)]
        items[:] = [item for item in items if self.of(item.nodeid)]
        if dropped:
            config.hook.pytest_deselected(items=dropped)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        siblings = pyfuncitem.funcargs["gpuperf"]
        assert isinstance(siblings, NaiveSiblings)
        try:
            result = yield
        except LookedAt:
            result = True
        except DeviceNeeded:
            siblings.measure()
            raise
        siblings.measure()
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        found: dict[str, list[Any]] = {}
        for workload in json.loads(getattr(report, "gpuperf", '{"workloads": []}'))["workloads"]:
            found[workload["key"]["workload"]] = workload.get("judgements", [])
        for pair in self.of(report.nodeid):
            self._pairs[pair] = {"outcome": report.outcome, "judgements": found.get(pair.optimised, [])}

    def pytest_unconfigure(self) -> None:
        os.environ.pop(FOR_CHILDREN, None)

    def pytest_sessionfinish(self) -> None:
        if self._file is None:
            return
        named = [
            {"family": pair.family, "optimised": pair.optimised, "naive": pair.naive, **outcome}
            for pair, outcome in self._pairs.items()
        ]
        self._file.write_text(json.dumps({"pairs": named}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def configure(config: pytest.Config, file: Path | None) -> None:
    """Turn what the command line, or the process that started this one, says; nothing without either."""
    given = config.getoption("--naive-siblings", None) or os.environ.get(FOR_CHILDREN, "").splitlines()
    if not given or _is_other_side(config):
        return
    if config.getoption("--update-baselines", None) is not None:
        raise pytest.UsageError("--naive-siblings: a naive workload must not become an optimised one's baseline")
    os.environ[FOR_CHILDREN] = "\n".join(given)
    config.pluginmanager.register(Turning(choose(given), file), "naive-siblings")


def _is_other_side(config: pytest.Config) -> bool:
    """Whether this process runs what the run is compared with (``--gpuperf-against``), which is not turned."""
    file = config.getoption("--gpuperf-task", None)
    return file is not None and isinstance(read_task(Path(file)), RevisionTask)
