"""Claims: what a verdict follows from, that each can fail, and that formulas give the figures on record."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import details
import page
import pytest
from claims import __main__ as main

from pytest_gpuperf.counters.catalogue import METRICS

BEYOND_THE_CATALOGUE = (Path(__file__).parent / "hopper_metrics.txt").read_text(encoding="utf-8").split()
"""Metrics of GH100 that Nsight Compute accepts and no set of the plugin has."""
PEAKS = {"copy_bandwidth": 4.266e12, "fp32": 6.494e13}
WRONG = (0.0, 0.3, 0.5, 2.0, 3.0)
"""A wrong figure is so many times the right one, one more, and that of no effect or upside down."""


FIGURES = main.on_record()["figures"]


@pytest.mark.parametrize(("given", "verdicts"), [
    ({"says": 2.0}, {1.71: main.REPRODUCED, 2.4: main.MORE, 1.6: main.LESS, 1.005: main.CONTRADICTED}),
    ({"says": 0.5}, {0.5: main.REPRODUCED, 0.3: main.MORE, 0.8: main.LESS, 1.2: main.CONTRADICTED}),
    ({"says": [1, None]}, {1.1: main.REPRODUCED, 1.001: main.CONTRADICTED}),
    ({"says": 1.0, "gpu": "any"}, {1.1: main.REPRODUCED, 1.2: main.CONTRADICTED}),
    ({"says": 3.0, "can": True}, {1.1: main.REPRODUCED, 9.0: main.REPRODUCED, 1.0: main.CONTRADICTED}),
    ({"says": 90, "unit": "%", "gpu": "Titan V"}, {85.0: main.REPRODUCED, 50.0: main.NOT_COMPARABLE}),
    ({"says": 32, "unit": "sectors", "exact": True, "gpu": "any"}, {32: main.REPRODUCED, 33: main.CONTRADICTED}),
    ({"says": 2.0, "origin": "erratum"}, {2.0: main.ERRATUM}),
    ({"why": "no such chip"}, {2.0: main.NOT_COMPARABLE}),
])  # fmt: skip
def test_a_verdict_follows_from_both_figures(given: dict[str, Any], verdicts: dict[float, str]) -> None:
    claim = main.Claim("family", {"kind": "time", "unit": "x", **given})
    assert {figure: claim.verdict(figure) for figure in verdicts} == verdicts


def test_no_claim_is_near_a_border_and_each_that_is_compared_can_fail() -> None:
    claims = main.claims().values()
    assert {one.id: one.border(FIGURES[one.id][0]) for one in claims if one.formula} == {
        one.id: "" for one in claims if one.formula
    }
    compared = [one for one in claims if one.formula and one.verdict(FIGURES[one.id][0]) in main.VERDICTS[:4]]
    for one in random.Random(45).sample(compared, min(60, len(compared))):
        right = FIGURES[one.id][0]
        wrong = (*(right * each for each in WRONG), right + 1, one.neutral_figure or 1 / (right or 1))
        assert {*map(one.verdict, wrong)} - {one.verdict(right)}, one.id


def test_a_figure_of_another_verdict_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of_baselines()
    assert main.check(report, ["transpose32"]) == 0, capsys.readouterr().out
    for test in report["tests"]:
        for work in test.get("workloads", ()):
            if work["key"]["workload"] == "transpose_naive" and "time" in work:
                work["time"]["rounds"] = [1.0]
    assert main.check(report, ["transpose32"]) == 1
    assert "!! on record" in capsys.readouterr().out
    assert main.check({**report, "tests": []}, ["transpose32"]) == 1
    assert "0 workloads of transpose32" in capsys.readouterr().out


def report_of_baselines() -> dict[str, Any]:
    report = details.recorded_report()
    report["tests"].append({"module": "", "peaks": PEAKS})
    return report


def test_formulas_give_the_figures_on_record() -> None:
    for one, figures, problem in main.evaluated(report_of_baselines(), [*main.claims().values()]):
        if one.formula and "recorded" not in problem:  # by a test
            assert not problem, one.id
            assert figures == pytest.approx(FIGURES[one.id], rel=0.05), one.id


def test_every_metric_is_known() -> None:
    assert set(main.counters.all_metrics()) <= METRICS.keys() | set(BEYOND_THE_CATALOGUE)


def test_the_pages_are_those_of_the_figures_on_record() -> None:
    assert page.text_of(main.claims(), main.on_record()) == main.PAGE.read_text(encoding="utf-8")
    text = details.text_of(main.claims(), details.recorded_report(), main.evaluated)
    assert text == main.PAGE.with_name("details.md").read_text(encoding="utf-8")
