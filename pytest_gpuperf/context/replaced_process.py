"""A process that cannot use its GPU any more is replaced by a fresh one, which goes on where it was.

``exec`` does it: process id, terminal, pipes and the program that waits stay, and what the kernel driver held for the
old image, an endless kernel included, ends with it.  The reports so far travel in a file and are told once more to
pytest in the place of their tests, so that counts, JUnit and verdicts are those of one run.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest

from pytest_gpuperf.context import child_process, stash
from pytest_gpuperf.model.task import RevisionTask

RESUME_VARIABLE = "GPUPERF_RESUME"
"""Names the file with what a process before this one has found."""
MOST = 20
"""Processes that may follow the first."""
PROGRAMS = {"pytest", "py.test", "__main__.py"}


class ReplacedProcess:
    """A plugin that ``isolation`` registers: keeps the reports of a process, and tells those of the one before it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._reports: list[pytest.TestReport] = []
        self._earlier: dict[str, list[pytest.TestReport]] = {}
        self._before = 0
        """Processes before this one."""
        place = os.environ.pop(RESUME_VARIABLE, "")
        if place:
            self._take_over(Path(place))

    def _take_over(self, place: Path) -> None:
        try:
            found = json.loads(place.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            words = f"{RESUME_VARIABLE}={place} names no file that a process before this one left ({problem}): unset it"
            raise pytest.UsageError(words) from None
        place.unlink()
        self._before = found["before"]
        stash.run_of(self._config).confirmed = found["confirmed"]
        for one in found["reports"]:
            report = restored(self._config, one)
            self._earlier.setdefault(report.nodeid, []).append(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        reports = self._earlier.pop(item.nodeid, None)
        if reports is None:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)

    @property
    def possible(self) -> bool:
        """Whether this process is pytest's alone: a program that calls ``pytest.main`` must not vanish."""
        task = self._config.stash[stash.OPTIONS].task
        by_user = task is None and Path(sys.argv[0]).name in PROGRAMS
        own = by_user or isinstance(task, RevisionTask)
        return own and self._before < MOST and list(map(str, self._config.invocation_params.args)) == sys.argv[1:]

    def _restore_evidence(self, told: Sequence[dict[str, Any]]) -> None:
        """Give reports back what the run's book has taken from them."""
        found = stash.run_of(self._config).results.results
        for one in told:
            if one.get("gpuperf") == "":
                one["gpuperf"] = msgspec.json.encode(found[one["nodeid"]]).decode()

    def go_on(self, why: str, more: Sequence[pytest.TestReport] = ()) -> NoReturn:
        """Replace this process.  ``more`` are reports that pytest has not been told."""
        reports = [*self._reports, *more]
        told = [self._config.hook.pytest_report_to_serializable(config=self._config, report=one) for one in reports]
        self._restore_evidence(told)
        confirmed = stash.run_of(self._config).confirmed
        with tempfile.NamedTemporaryFile(
            "w", prefix="gpuperf-resume-", suffix=".json", delete=False, encoding="utf-8"
        ) as file:
            json.dump({"before": self._before + 1, "confirmed": confirmed, "reports": told}, file, default=str)
        child_process.progress_of(self._config)(f"{why}: the tests that follow run in a fresh process")
        with contextlib.suppress(Exception):  # other plugins' ends: whatever goes wrong there, the run goes on
            self._config._ensure_unconfigure()
        os.environ[RESUME_VARIABLE] = file.name
        if self._config.stash[stash.OPTIONS].ci:  # which a conftest may have taken out of the environment
            os.environ["CI"] = "true"
        child_process.keep_parent(self._config)
        _replace_process(self._config.invocation_params.dir)


def _replace_process(folder: Path) -> NoReturn:
    """Start this process's program anew in its place, in ``folder``."""
    os.chdir(folder)
    with contextlib.suppress(OSError, ValueError):  # a stream that the program has closed
        sys.stdout.flush()
        sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def restored(config: pytest.Config, told: dict[str, Any]) -> pytest.TestReport:
    """A report out of JSON of what ``pytest_report_to_serializable`` made of it."""
    if isinstance(told.get("longrepr"), list):  # a skip's place and reason, a tuple before
        told["longrepr"] = tuple(told["longrepr"])
    report: pytest.TestReport = config.hook.pytest_report_from_serializable(config=config, data=told)
    return report


def report_of(item: pytest.Item, when: str, longrepr: Any, seconds: float = 0.0) -> pytest.TestReport:
    """A report of a phase that this process will not come to the end of; it failed if there is a ``longrepr``."""
    return pytest.TestReport(
        nodeid=item.nodeid, location=item.location, keywords=dict.fromkeys(item.keywords, 1),
        outcome="failed" if longrepr else "passed", longrepr=longrepr, when=when, duration=seconds,  # type: ignore[arg-type]
        user_properties=list(item.user_properties),
    )  # fmt: skip
