"""Does the gate notice an optimised workload of the example suite that becomes its naive one: code, launch and all?

    python benchmarks/siblings.py transpose32 --gpuperf-arch=sm_90      # look at the messages
    python benchmarks/siblings.py --page docs/results/siblings.md       # all pairs, on a GPU

Of each pair (``example_suite/pairs.json``) the test measures the naive workload, with its kernel, launch and check,
under the optimised one's name, so that it is compared with the optimised one's baseline.  Nothing else is measured, and
a test ends where it first looks at a result.  pytest gets this file as a plugin.  The page gets the verdicts in place
of the pairs' earlier ones.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "example_suite"))
from pages.facts import PAIRS, Pair, Recorded

from pytest_gpuperf.model.task import RevisionTask, read_task

CHOSEN, PAGE = "NAIVE_SIBLINGS", "NAIVE_SIBLINGS_PAGE"
"""Environment variables: the names of the pairs, for the processes that pytest-gpuperf starts as well, and the page."""
_PAIR = re.compile(r"^\| (\w+) \| (.*?) \| (.*?) \| .* \| (?:red|green) \|$", re.MULTILINE)
_GAIN = re.compile(r"^\| (\w+) \| (.*?) \| .* \| ([\d.]+) \| .*? \| .*? \| (red|green) \|$", re.MULTILINE)
_SUMMARY = re.compile(r"^Of \d+ pairs that differ in code or launch .*$", re.MULTILINE)


def chosen(names: Iterable[str]) -> list[Pair]:
    """Pairs by family or by ``family:optimised``; all without a name.  Raises ``SystemExit``."""
    wanted = set(names)
    known = {pair: {pair.family, f"{pair.family}:{pair.optimised}"} for pair in PAIRS}
    if unknown := wanted.difference(*known.values()):
        raise SystemExit(f"not a family, nor FAMILY:OPTIMISED of pairs.json: {', '.join(sorted(unknown))}")
    return [pair for pair, called in known.items() if not wanted or called & wanted]


class LookedAt(Exception):
    """The test came to what it would do with its measurements."""


class Unseen:
    """In place of a measurement."""

    def __getattr__(self, name: str) -> Any:
        raise LookedAt(name)


class NaiveSiblings:
    """In place of ``gpuperf``: keeps what it is asked to measure, and measures the naive ones in the end."""

    def __init__(self, gpuperf: Callable[..., Any], pairs: Iterable[Pair]) -> None:
        self._gpuperf, self._pairs = gpuperf, pairs
        self._asked: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {}

    def __call__(self, workload: Callable[[], Any], *, name: str | None = None, **how: Any) -> Unseen:
        kernel = getattr(workload, "kernel", None)
        own = getattr(workload, "__name__", "workload") if kernel is None else kernel.name
        self._asked[name or own] = (workload, how)
        return Unseen()

    def measure(self) -> None:
        """Each naive workload in the place of the optimised one; nothing where the test has not asked for both."""
        for pair in self._pairs:
            if self._asked.keys() >= {*pair.names}:
                (workload, how), (optimised, _) = (self._asked[name] for name in pair.names)
                is_launch = hasattr(workload, "kernel") and hasattr(optimised, "kernel")
                self._gpuperf(workload if is_launch else lambda run=workload: run(), name=pair.optimised, **how)


class Siblings:
    """The hooks of a run: only tests of its pairs run, and their judgements go to a file."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._judged: dict[Pair, Any] = dict.fromkeys(pairs)

    def of(self, node_id: str) -> list[Pair]:
        """The pairs that a test measures."""
        path, _, test = node_id.partition("::")
        return [pair for pair in self._judged if (f"test_{pair.family}.py", pair.test) == (Path(path).name, test)]

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        config.hook.pytest_deselected(items=[item for item in items if not self.of(item.nodeid)])
        items[:] = [item for item in items if self.of(item.nodeid)]

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        siblings = NaiveSiblings(pyfuncitem.funcargs["gpuperf"], self.of(pyfuncitem.nodeid))
        pyfuncitem.funcargs["gpuperf"] = siblings
        try:
            with contextlib.suppress(LookedAt):
                yield
        finally:
            siblings.measure()
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        workloads = json.loads(getattr(report, "gpuperf", '{"workloads": []}'))["workloads"]
        found = {workload["key"]["workload"]: workload.get("judgements", []) for workload in workloads}
        self._judged.update((pair, found[pair.optimised]) for pair in self.of(report.nodeid) if pair.optimised in found)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        is_main = not hasattr(session.config, "workerinput") and session.config.getoption("--gpuperf-task") is None
        if is_main and os.environ[PAGE]:
            page, recorded = Path(os.environ[PAGE]), Recorded()
            rows = [row(pair, found, recorded) for pair, found in self._judged.items() if found]
            page.write_text(with_rows(page.read_text(encoding="utf-8"), rows), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    task = config.getoption("--gpuperf-task")
    if config.getoption("--update-baselines") is not None:
        raise pytest.UsageError("a naive workload must not become an optimised one's baseline")
    if task is None or not isinstance(read_task(Path(task)), RevisionTask):  # the other side of --gpuperf-against
        config.pluginmanager.register(Siblings(chosen(json.loads(os.environ[CHOSEN]))), "naive-siblings")


def row(pair: Pair, judgements: Sequence[Mapping[str, Any]], recorded: Recorded) -> str:
    """A line of the page: the gain on record, and the verdicts."""
    static: dict[str, list[str]] = {}
    for one in (one for one in judgements if one["kind"] == "static"):
        static.setdefault(one["verdict"], []).append(one["target"])
    said = static if len(static) == 1 else (f"{verdict} ({', '.join(of)})" for verdict, of in static.items())
    timed = [(one["verdict"], (one.get("time") or {}).get("ratio")) for one in judgements if one["kind"] == "time"]
    time = ", ".join(verdict + (f" x{ratio:.3g}" if ratio else "") for verdict, ratio in timed) or "not measured"
    naive, optimised = (recorded.time_ns(pair, name) for name in pair.names)
    colour = "red" if {"WORSE", "SLOWER"} & {one["verdict"] for one in judgements} else "green"
    gain = f"{naive / optimised:.3g}" if naive and optimised else ""
    cells = pair.cause or "several things", gain, ", ".join(said) or "none", time, colour
    return f"| {pair.family} | {pair.optimised} | {pair.naive} | {' | '.join(cells)} |"


def with_rows(page: str, rows: Iterable[str]) -> str:
    """These rows in place of the pairs' old ones, those of new pairs at the end of the first table; and the summary."""
    new = {_PAIR.findall(text)[0]: text for text in rows}
    first, _, others = _PAIR.sub(lambda old: new.pop(old.groups(), old[0]), page).partition("|\n\n")
    table = "\n".join([f"{first}|", *new.values()])
    due = [found for found in _GAIN.findall(table) if float(found[2]) >= 1.02]
    green = [f"{optimised} ({family})" for family, optimised, _, colour in due if colour == "green"]
    said = f"{len(due) - len(green)} are red, and not: {'; '.join(green)}" if green else "all are red"
    said = f"Of {len(due)} pairs that differ in code or launch and gain at least 2 %, {said}."
    return f"{_SUMMARY.sub(said, table)}\n\n{others}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure naive workloads under the names of optimised ones.")
    parser.add_argument("names", nargs="*", metavar="FAMILY[:OPTIMISED]", help="default: all; options are for pytest")
    parser.add_argument("--page", type=Path, metavar="MD", help="put the verdicts into this page")
    given, options = parser.parse_known_args()
    os.environ |= {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")])),
        CHOSEN: json.dumps(given.names), PAGE: str(given.page.absolute()) if given.page else "",
    }  # fmt: skip
    tests = sorted({f"example_suite/test_{pair.family}.py" for pair in chosen(given.names)})
    command = [sys.executable, "-m", "pytest", "-p", "siblings", "--gpuperf", *options, *tests]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
