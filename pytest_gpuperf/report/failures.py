"""Failures of the gate that look alike: pytest shows one of them, for all.

One change in a header that many kernels include fails hundreds of tests with the same words.  Failures are alike if the
same kinds of verdicts on the same targets have the same causes; which figures differ is no difference.  Errors of the
plugin are alike if their first lines are.  ``-v`` shows every one, as pytest does.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import Advice, Judgement

LEAST_FAILURES = 5
"""Failures of the gate that form a group; fewer are shown one by one."""


def signature(failed: Sequence[Judgement], advice: Mapping[Key, Sequence[Advice]]) -> str:
    """The words that failures which are alike have in common; it travels on the report of the test."""
    judged = sorted({
        (one.kind, one.verdict.value, one.target, *sorted({c.what for c in one.changes if c.direction != "neutral"}),
         "" if one.changes else re.sub(r"[\d.]+", "0", one.reason))
        for one in failed
    })  # fmt: skip
    causes = sorted({one.cause for key in {one.key for one in failed} for one in advice.get(key, ())})
    return json.dumps([judged, causes])


def severity(failed: Sequence[Judgement]) -> float:
    """The largest ratio of times; 1 without any."""
    return max((one.time.ratio for one in failed if one.time is not None and one.time.ratio is not None), default=1.0)


class RedGroups:
    """Failed reports in groups that are alike; ``leave`` chooses those that pytest prints or counts."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._stats: dict[str, list[Any]] = reporter.stats
        self.failed: list[pytest.TestReport] = list(self._stats.get("failed", ()))
        """All of them."""
        alike: dict[str, list[pytest.TestReport]] = {}
        for report in self.failed:
            if found := getattr(report, "gpuperf_red", ""):
                alike.setdefault(found, []).append(report)
        if reporter.config.get_verbosity() > 0 or sum(map(len, alike.values())) < LEAST_FAILURES:
            alike = {}
        groups = sorted(alike.values(), key=lambda group: (max(map(_severity, group)), len(group)), reverse=True)
        others = [report for report in self.failed if getattr(report, "gpuperf_red", "") not in alike]
        self.named: list[pytest.TestReport] = [*others, *map(_named, groups)]
        """The worst report of each group."""

    def leave(self, reports: Sequence[pytest.TestReport]) -> None:
        """Let pytest take these for the failed ones."""
        if self.failed:
            self._stats["failed"] = list(reports)


def _severity(report: pytest.TestReport) -> float:
    return getattr(report, "gpuperf_severity", 1.0)


def _named(group: Sequence[pytest.TestReport]) -> pytest.TestReport:
    """The worst one, with the number of the others in its headline, and before its message in the short summary."""
    worst = max(group, key=_severity)
    if len(group) == 1:
        return worst
    functions = len({report.nodeid.partition("[")[0] for report in group})
    more = f"and {len(group) - 1} more like it" + (f", in {numbered(functions, 'test')}" if functions > 1 else "")
    shown = copy.copy(worst)
    if worst.location is not None:
        shown.location = (*worst.location[:2], f"{worst.location[2]} {more}")
    crash = getattr(worst.longrepr, "reprcrash", None)
    if crash is not None:
        shown.longrepr = copy.copy(worst.longrepr)
        shown.longrepr.reprcrash = dataclasses.replace(crash, message=f"{more}: {crash.message}")  # type: ignore[union-attr]
    return shown
