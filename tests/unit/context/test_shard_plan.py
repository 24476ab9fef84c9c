"""Which shard runs which test: every one exactly one, the same everywhere, none much longer than the others."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.context.shard_plan import Planned, Shard, digest_of, shards_of

NODES = st.text("abc[]:", min_size=1, max_size=4)
TESTS = st.dictionaries(NODES, st.tuples(st.sampled_from(["", "@one", "@two"]), st.floats(0, 1e4)), max_size=30).map(
    lambda found: [Planned(node, group or node, seconds) for node, (group, seconds) in found.items()]
)


@given(TESTS, st.integers(1, 9), st.randoms(use_true_random=False))
def test_every_test_has_one_shard_whatever_the_order(tests, of, random) -> None:
    plan = shards_of(tests, of)
    assert plan.keys() == {test.node for test in tests}
    assert set(plan.values()) <= set(range(1, of + 1))
    shuffled = [*tests, *tests[:3]]  # a test may be given twice
    random.shuffle(shuffled)
    again = shards_of(shuffled, of)
    assert again == plan
    assert digest_of(again) == digest_of(plan)


@given(TESTS, st.integers(1, 9))
def test_tests_of_one_unit_stay_together(tests, of) -> None:
    plan = shards_of(tests, of)
    for unit in {test.unit for test in tests}:
        assert len({plan[test.node] for test in tests if test.unit == unit}) == 1


@given(TESTS, st.integers(1, 9))
def test_no_shard_takes_longer_than_the_mean_and_the_longest_unit(tests, of) -> None:
    """Of greedy scheduling (Graham, "Bounds on multiprocessing timing anomalies", 1969)."""
    plan = shards_of(tests, of)
    units, loads = Counter(), Counter()
    for test in tests:
        units[test.unit] += test.seconds
        loads[plan[test.node]] += test.seconds
    total, longest = sum(units.values()), max(units.values(), default=0.0)
    assert max(loads.values(), default=0.0) <= (total / of + longest) * (1 + 1e-9)


@given(st.integers(0, 40), st.integers(1, 9))
def test_where_all_take_as_long_numbers_differ_by_one_at_most(count, of) -> None:
    sizes = Counter(shards_of([Planned(f"t{number}", f"t{number}", 1.0) for number in range(count)], of).values())
    each = [sizes[index] for index in range(1, of + 1)]
    assert max(each) - min(each) <= 1


def test_the_longest_first() -> None:
    tests = [Planned(name, name, seconds) for name, seconds in (("a", 1), ("b", 5), ("c", 1), ("d", 3), ("e", 1))]
    assert shards_of(tests, 2) == {"b": 1, "d": 2, "a": 2, "c": 2, "e": 1}


@given(st.text(max_size=20), st.integers(1, 50))
def test_one_shard_answers_for_what_none_runs(node, of) -> None:
    assert [Shard(index, of).answers_for(node) for index in range(1, of + 1)].count(True) == 1


def test_a_digest_tells_another_plan() -> None:
    plans = [{"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 1}, {"a": 1, "b": 1}]
    assert len({digest_of(plan) for plan in plans}) == len(plans)
    assert digest_of({}) == ""


@pytest.mark.parametrize("of", [1, 4])
def test_no_test_at_all(of) -> None:
    assert shards_of([], of) == {}
