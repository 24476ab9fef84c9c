"""Moved figures and siblings in place: what the assertions of the example suite's claims say of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
TRANSPOSE = "example_suite/test_transpose32.py::test_transpose_of_a_batch"


@pytest.fixture(scope="module")
def mutations() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "benchmarks"), str(ROOT / "example_suite"), *sys.path])
        yield importlib.import_module("claim_mutations")


def test_every_drawn_claim_fails_on_a_moved_figure(mutations: ModuleType) -> None:
    found = mutations.outcomes.read(mutations.outcomes.COMMITTED)
    chosen = mutations.draw(found)
    assert len(chosen) == mutations.DRAWN
    for claim in chosen:
        figure = mutations.figure_of(found, claim)
        middle = [(one.here.low + one.here.high) / 2 for one in claim.because]
        assert mutations.asserted(claim, figure, middle).words == ""
        for moved in mutations.shifted(claim, figure):
            assert mutations.asserted(claim, moved, middle).words.startswith(f"{claim.id} has changed: measured")


def test_the_draw_is_the_same_every_time_and_from_all_kinds(mutations: ModuleType) -> None:
    found = mutations.outcomes.read(mutations.outcomes.COMMITTED)
    assert mutations.draw(found) == mutations.draw(found)
    assert {claim.kind for claim in mutations.draw(found)} >= {"time", "counter", "static", "rate"}


def test_a_sibling_in_place_turns_the_claims_about_it_red(mutations: ModuleType) -> None:
    found = mutations.outcomes.read(mutations.outcomes.COMMITTED)
    turned = mutations.siblings(found, mutations.with_siblings(TRANSPOSE))
    of_padded = {one.claim: one for one in turned if one.optimised == "transpose_padded"}
    assert of_padded["TR-04"].said.figure == pytest.approx(2.28, abs=0.05)  # the unpadded one's gain
    assert of_padded["TR-04"].said.words.startswith("TR-04 has changed: measured 2.2")
    assert not of_padded["TR-06"].is_another_figure  # both load 4 sectors per request


def test_a_page_lists_what_no_sibling_turns_red_and_what_has_no_figure(mutations: ModuleType) -> None:
    found = mutations.outcomes.read(mutations.outcomes.COMMITTED)
    passing = mutations.Sibling("TR-04", "transpose_padded", "transpose_copy", 3.85, mutations.Said(3.6, ""))
    failing = mutations.Sibling("TR-22", "transpose_padded", "transpose_copy", 1.0, mutations.Said(32.0, "has changed"))
    text, all_failed = mutations.page(found, [passing, failing])
    assert all_failed
    assert "* TR-04 (" in text
    assert "transpose_copy for transpose_padded: 3.6: PASSES" in text
    assert "* TR-22 (" not in text
    without = text.partition("## What cannot be moved")[2]
    assert "CFD-01" in without


def test_claims_are_found_in_the_test_that_names_them_or_calls_what_does(mutations: ModuleType) -> None:
    named = mutations.replay_claims.tests_of_claims()
    assert named["TR-04"] == "test_transpose32.py::test_transpose_of_a_batch"
    assert named.keys() == mutations.load_claims().keys()
