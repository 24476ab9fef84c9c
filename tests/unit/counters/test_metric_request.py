"""What a run asks for: sets, names, tolerances."""

from __future__ import annotations

from pytest_gpuperf.counters.catalogue import (
    DRAM_READ,
    INSTRUCTIONS,
    L2_SECTORS,
    LOAD_SECTORS,
    SETS,
    hint,
    names_of,
    rules_for,
)


def test_a_set_is_its_metrics_and_each_comes_once():
    names = names_of(["default", INSTRUCTIONS.name, "own__metric.sum"])
    assert names == (*(m.name for m in SETS["default"]), "own__metric.sum")


def test_the_catalogue_decides_where_a_test_does_not():
    dram, instructions, stranger = rules_for([DRAM_READ.name, INSTRUCTIONS.name, "own__metric.sum"], {}, "cold")
    assert (dram.tolerance, dram.floor, dram.better) == (0.2, 4.0 * 2**20, "lower")
    assert instructions.tolerance == 0.001
    assert stranger.tolerance is None


def test_an_own_tolerance_takes_the_place_of_band_and_floor():
    (dram,) = rules_for([DRAM_READ.name], {DRAM_READ.name: 0.1}, "cold")
    assert (dram.tolerance, dram.floor, dram.better) == (0.1, 0.0, "lower")


def test_the_sign_of_an_own_tolerance_says_which_way_is_better_where_nothing_else_does():
    own = {"own__a.sum": 0.05, "own__b.pct": -0.05, "own__c.sum": 0.0, LOAD_SECTORS.name: -0.1}
    a, b, c, sectors = rules_for(own, own, "cold")
    assert (a.better, a.tolerance) == ("lower", 0.05)
    assert (b.better, b.tolerance) == ("higher", 0.05)
    assert (c.better, c.tolerance) == ("lower", 0.0)
    assert sectors.better == "lower"


def test_a_hint_is_given_for_what_the_catalogue_has_almost():
    assert hint("smsp__inst_excuted.sum") == "; did you mean 'smsp__inst_executed.sum'?"
    assert hint("nothing_of_the_kind") == ""


def test_traffic_of_a_warm_workload_informs_unless_the_test_gives_it_a_tolerance():
    names = [DRAM_READ.name, L2_SECTORS.name, LOAD_SECTORS.name]
    assert [rule.tolerance for rule in rules_for(names, {L2_SECTORS.name: 0.3}, "warm")] == [None, 0.3, 0.0]
    assert None not in [rule.tolerance for rule in rules_for(names, {}, "cold")]
