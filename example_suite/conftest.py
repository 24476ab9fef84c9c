"""Fixtures and options of the example suite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import outcomes
import pytest
from claims import PROPERTY, ClaimChecker
from measured import figures_of


@pytest.fixture
def claim(request: pytest.FixtureRequest) -> ClaimChecker:
    """Check a document's claim by its id, and put the outcome on record in the test's ``user_properties``."""

    def record(name: str, value: object) -> None:
        # pytest's own record_property warns wherever the JUnit family is not an old one.
        request.node.user_properties.append((name, value))

    survey = bool(request.config.getoption("--claims-survey", False))
    return ClaimChecker(record, lambda: str(request.getfixturevalue("gpu").slug), survey=survey)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--claims-to", metavar="FILE", help="write what became of the documents' claims to this JSON file")
    parser.addoption(
        "--claims-survey", action="store_true", help="put the figures of claims on record and assert none of them"
    )


def pytest_configure(config: pytest.Config) -> None:
    claims_to = _file(config, "--claims-to")
    if claims_to is not None:
        config.pluginmanager.register(ClaimOutcomes(claims_to), "claim-outcomes")


def _file(config: pytest.Config, option: str) -> Path | None:
    """Where this process writes; under pytest-xdist the outcomes come to the controller."""
    given = config.getoption(option, None)  # not there yet if pytest meets this file after it began
    if given is None or hasattr(config, "workerinput"):
        return None
    path: Path = config.invocation_params.dir / given
    if not path.parent.is_dir():
        raise pytest.UsageError(f"{option}={given}: there is no folder {path.parent}")
    return path


class ClaimOutcomes:
    """Collects the outcomes and the measured figures from the reports of all tests; writes them when the run ends."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._run = outcomes.Run()
        self._outcomes: dict[str, dict[str, Any]] = {}
        self._workloads: dict[str, list[dict[str, Any]]] = {}
        """By test."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            found = (json.loads(str(value)) for name, value in report.user_properties if name == PROPERTY)
            self._outcomes.update((outcome["id"], outcome) for outcome in found)
            evidence = getattr(report, "gpuperf", None)  # with --gpuperf alone
            self._workloads[report.nodeid] = [] if evidence is None else figures_of(evidence)
            if evidence is not None:
                self._run = self._run.filled_from(outcomes.run_of(evidence))

    def pytest_sessionfinish(self) -> None:
        workloads = [figures for test in sorted(self._workloads) for figures in self._workloads[test]]
        text = outcomes.text_of(outcomes.Outcomes(self._run, self._outcomes, workloads))
        self._file.write_text(text, encoding="utf-8")
