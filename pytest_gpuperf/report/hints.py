"""What advice knows of kernels that changed and did not fail: a line for each cause that is likely to cost time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pytest_gpuperf.report.advice import gain_words
from pytest_gpuperf.verdict import Verdict

if TYPE_CHECKING:
    import pytest

    from pytest_gpuperf.session import TestEvidence, WorkloadEvidence

LEAST_GAIN = 0.1
"""A cause that would gain less is left to ``gpuperf explain``: by the machine code alone, gains are estimates."""


def hints(evidence: Iterable[TestEvidence]) -> list[str]:
    """One line for each likely cause in machine code that changed, where no verdict says that anything got worse."""
    return [f"{work.key}: {line}" for test in evidence for work in test.workloads for line in hints_of(work)]


def print_hints(reporter: pytest.TerminalReporter, evidence: Iterable[TestEvidence]) -> None:
    """Print them for the user to look into; they fail nothing."""
    for line in hints(evidence):
        reporter.write_line(line, yellow=True)


def hints_of(work: WorkloadEvidence) -> list[str]:
    """Those of one workload."""
    verdicts = {judgement.verdict for judgement in work.judgements}
    if any(verdict.is_regression for verdict in verdicts):
        return []
    result = "its verdict is open" if Verdict.INCONCLUSIVE in verdicts else "nothing that gates got worse"
    return [
        f"the machine code changed, and {result}; likely {one.cause} on {one.arch} ({gain_words(one)}): "
        f"gpuperf explain {work.key.node_id}"
        for one in work.advice
        if one.gain >= LEAST_GAIN and not (one.counted or one.same_code or one.outweighed)
    ]
