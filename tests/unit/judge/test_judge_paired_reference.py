"""The vectorised decision against the same rule block by block (docs/explanation/statistics.md, "Paired blocks")."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_gpuperf.judge.block_decision import FASTER_PATIENCE, UNDECIDED, judge_blocks, judge_many
from pytest_gpuperf.judge.block_scores import SIGNS
from pytest_gpuperf.judge.policy import Decision, Policy

DELTA, EPSILON = 0.005, 0.01
CODES = [Decision.SLOWER, Decision.FASTER, Decision.SAME, Decision.NOT_SLOWER]
VALUES = {
    "below epsilon": -0.012, "faster": -0.007, "equal": 0.0, "delta": math.log1p(DELTA), "between": 0.0075,
    "epsilon": math.log1p(EPSILON), "slower": 0.012,
}  # fmt: skip

policies = st.builds(
    Policy,
    delta=st.just(DELTA), epsilon=st.just(EPSILON), alpha=st.sampled_from([0.1, 1e-2, 1e-3, 2e-6, 1e-30]),
    alpha_faster=st.sampled_from([0.1, 1e-2, 1e-6]), beta=st.sampled_from([0.2, 0.005, 1e-4]),
    blocks_max=st.sampled_from([1, 12, 30, 128]),
)  # fmt: skip
steady = st.builds(
    lambda usual, others, count: [others.get(place, usual) for place in range(count)],
    st.sampled_from(list(VALUES.values())),
    st.dictionaries(st.integers(0, 60), st.sampled_from(list(VALUES.values())), max_size=8),
    st.integers(1, 70),
)
"""One kind of block, with a few of others among them: what the rule's waiting is for."""


class BlockByBlock:
    """The rule with nothing in it but counts of votes so far."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.blocks = self.slower = self.faster = self.not_slower = self.not_faster = 0
        self.passed_since: int | None = None

    def worth(self, votes: int, rate: float) -> bool:
        return SIGNS.log_e(votes, self.blocks) >= -math.log(rate)

    def take(self, r: float) -> Decision | None:
        """The decision with this block, if it falls."""
        policy, epsilon = self.policy, math.log1p(self.policy.epsilon)
        self.blocks += 1
        self.slower += r > math.log1p(policy.delta)
        self.faster += r < -math.log1p(policy.delta)
        self.not_slower += r < epsilon
        self.not_faster += r > -epsilon
        if self.worth(self.slower, policy.alpha):
            return Decision.SLOWER
        if self.worth(self.faster, policy.alpha_faster):
            return Decision.FASTER
        if self.passed_since is None and self.worth(self.not_slower, policy.beta):
            self.passed_since = self.blocks
        if self.passed_since is None or (self.waits(self.passed_since) and self.blocks < policy.blocks_max):
            return None
        return self.passed()

    def waits(self, since: int) -> bool:
        possible = math.isfinite(SIGNS.unanimous_blocks(self.policy.alpha, self.policy.blocks_max))
        for_slower = possible and self.worth(self.slower, self.policy.beta)
        return for_slower or (self.faster == self.blocks < since + FASTER_PATIENCE)

    def passed(self) -> Decision:
        same = self.worth(self.not_faster, self.policy.beta)
        return Decision.SAME if same else Decision.NOT_SLOWER

    def at_the_end(self) -> Decision:
        return Decision.INCONCLUSIVE if self.passed_since is None else self.passed()


def verify_prefixes(r: Sequence[float], policy: Policy) -> None:
    """Every prefix is judged as the rule judges it, with more blocks to come and without."""
    rule = BlockByBlock(policy)
    for used, value in enumerate(r[: policy.blocks_max], start=1):
        decision = rule.take(value)
        ended = decision or rule.at_the_end()
        going_on = decision or (ended if used == policy.blocks_max else Decision.CONTINUE)
        for stopped, expected in ((False, going_on), (True, ended)):
            found = judge_blocks(r[:used], policy, stopped=stopped)
            assert (found.decision, found.blocks) == (expected, used)
        if decision is not None:
            break
    codes, stops = judge_many(np.array([r]), policy)
    assert stops[0] == rule.blocks
    assert (None if codes[0] == UNDECIDED else CODES[codes[0]]) == decision


@settings(deadline=None, max_examples=150)
@given(steady, policies)
def test_steady_blocks_are_judged_as_the_rule_says_at_every_length(r: list[float], policy: Policy) -> None:
    verify_prefixes(r, policy)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(list(VALUES.values())), min_size=1, max_size=70), policies)
def test_mixed_blocks_are_judged_as_the_rule_says_at_every_length(r: list[float], policy: Policy) -> None:
    verify_prefixes(r, policy)


def test_the_end_of_the_time_and_of_the_blocks_name_what_is_proven_alike() -> None:
    """*Not faster* was proven while all voted *faster*, and fell behind before either end."""
    r = [VALUES["faster"]] * 11 + [VALUES["below epsilon"]] * 5
    patient = Policy(alpha_faster=1e-9)
    ends = [judge_blocks(r, patient, stopped=True), judge_blocks(r, Policy(alpha_faster=1e-9, blocks_max=16))]
    assert [end.decision for end in ends] == [Decision.NOT_SLOWER] * 2
    assert [end.blocks for end in ends] == [16] * 2


COINS = np.random.default_rng(47).choice([-1.0, 1.0], (20_000, 128))
HIDDEN = {
    "hardly any": np.full(128, 1e-6),
    "in the zone": np.full(128, 0.002),
    "beyond both": np.full(128, 0.03),
    "drifting": np.linspace(-0.01, 0.01, 128),
    "two modes": np.where(np.arange(128) % 3 == 0, 0.02, 0.001),
    "wandering": np.cumsum(np.random.default_rng(48).normal(0, 0.002, 128)),
}
"""What each block's two halves would differ by for equal kernels; only the coin gives it a sign."""


@pytest.mark.parametrize("noise", HIDDEN)
def test_at_the_tolerance_slower_is_no_more_frequent_than_alpha_however_long_it_is_waited_for(noise: str) -> None:
    codes, _ = judge_many(math.log1p(DELTA) + COINS * HIDDEN[noise], Policy(alpha=0.01))
    assert (codes == 0).mean() <= 0.01


@pytest.mark.parametrize("noise", HIDDEN)
def test_at_epsilon_a_pass_is_no_more_frequent_than_beta_with_the_wait(noise: str) -> None:
    codes, _ = judge_many(math.log1p(EPSILON) + COINS * HIDDEN[noise], Policy(alpha=2e-6, beta=0.01))
    assert ((codes == 2) | (codes == 3)).mean() <= 0.01


@pytest.mark.parametrize("noise", HIDDEN)
def test_what_is_slower_by_more_is_never_found_less(noise: str) -> None:
    """``selftest.detectable`` bisects on it."""
    effects = (0.0, 0.004, 0.006, 0.0075, 0.009, 0.0095, 0.01, 0.0125, 0.02)
    rows = COINS[:1000] * HIDDEN[noise] + np.random.default_rng(49).normal(0, 0.003, (1000, 128))
    found = [judge_many(math.log1p(effect) + rows, Policy(alpha=2e-6))[0] == 0 for effect in effects]
    for less, more in itertools.pairwise(found):
        assert not (less & ~more).any()
