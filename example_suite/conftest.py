"""Fixtures and options of the example suite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from claims import PROPERTY, ClaimChecker, load_claims
from measured import figures_of


@pytest.fixture
def claim(request: pytest.FixtureRequest) -> ClaimChecker:
    """Check a document's claim by its id, and put the outcome on record in the test's ``user_properties``."""

    def record(name: str, value: object) -> None:
        # pytest's own record_property warns wherever the JUnit family is not an old one.
        request.node.user_properties.append((name, value))

    return ClaimChecker(record, lambda: str(request.getfixturevalue("gpu").slug))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--claims-to", metavar="FILE", help="write what became of the documents' claims to this JSON file")


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--claims-to", None)  # not there yet if pytest meets this file after it began
    if file is None or hasattr(config, "workerinput"):  # under pytest-xdist the outcomes come to the controller
        return
    path = config.invocation_params.dir / file
    if not path.parent.is_dir():
        raise pytest.UsageError(f"--claims-to={file}: there is no folder {path.parent}")
    config.pluginmanager.register(ClaimOutcomes(path), "claim-outcomes")


class ClaimOutcomes:
    """Collects the outcomes and the measured figures from the reports of all tests; writes them when the run ends."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._outcomes: dict[str, dict[str, Any]] = {}
        self._workloads: dict[str, list[dict[str, Any]]] = {}
        """By test."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            found = (json.loads(str(value)) for name, value in report.user_properties if name == PROPERTY)
            self._outcomes.update((outcome["id"], outcome) for outcome in found)
            evidence = getattr(report, "gpuperf", None)  # with --gpuperf alone
            self._workloads[report.nodeid] = [] if evidence is None else figures_of(evidence)

    def pytest_sessionfinish(self) -> None:
        in_order = [self._outcomes[claim_id] for claim_id in load_claims() if claim_id in self._outcomes]
        workloads = [figures for test in sorted(self._workloads) for figures in self._workloads[test]]
        text = json.dumps({"claims": in_order, "workloads": workloads}, indent=1, ensure_ascii=False)
        self._file.write_text(text + "\n", encoding="utf-8")
