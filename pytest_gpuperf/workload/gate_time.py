"""The way to a verdict on a workload's time: rounds, the screen, paired blocks, suspicion.

``judge`` decides; here is what is measured for it, in which order, and what goes with the verdict.  A
workload that is slower in this process, paired or not, is a suspect: ``confirming`` runs it in a second one at
the end of its test.
"""

from __future__ import annotations

import math

import msgspec

from pytest_gpuperf.config.flags import MOST_BUDGET_S
from pytest_gpuperf.device.device_errors import LoadError
from pytest_gpuperf.device.launch import Configuration
from pytest_gpuperf.formatting import duration, numbered
from pytest_gpuperf.judge.eprocess import unanimous_blocks
from pytest_gpuperf.judge.paired_verdict import judge_pairs
from pytest_gpuperf.judge.time_case import TimeStep
from pytest_gpuperf.judge.unpaired import LOOKS
from pytest_gpuperf.judge.votes import PairedDecision, PairedPolicy
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.model.verdict import Judgement, PairSlot, Verdict
from pytest_gpuperf.timing.blocks import WANTED_BLOCKS
from pytest_gpuperf.timing.paired_run import Pairing, pair
from pytest_gpuperf.timing.pending_confirmations import Confirmation, PairedPending, UnpairedPending, of_pairs
from pytest_gpuperf.timing.rounds import NO_ROUNDS, Rounds
from pytest_gpuperf.workload import second_process, self_pairs
from pytest_gpuperf.workload.baseline_kernel import Opponent, changes_since, opponent_of
from pytest_gpuperf.workload.rounds_of_workload import Taken, Timing

FIRST_ROUNDS = 4
"""Candidate rounds before the first look (docs/explanation/statistics.md, "The screen")."""
ROUNDS_SHARE = 1 / 4
"""Of a workload's budget goes to rounds where pairs are to follow."""
MOST_KERNELS = 8
"""Of a callable that a note names."""


class Gate(Timing):
    """Times one workload for what this process is there for."""

    def take(self) -> Taken:
        """Record for an update, confirm for another process, or gate.  The caller holds the GPU's lock."""
        options = self._worker.options
        if options.record_to is not None:
            return self.record()
        return self._confirm() if options.confirm_to is not None else self._gate()

    def _gate(self) -> Taken:
        """Take rounds, and paired blocks where they help, until the judge wants no more or the budget is spent."""
        known = self.judge()
        all_of_them = known.judgement.verdict is Verdict.UNCHANGED and self._worker.options.pair_all
        tested = known.pairing_helps or all_of_them
        sustained = self._request.pair_slot == "sustained"  # then no rounds acquit: they do not show what power does
        if tested:
            self._alpha = self._worker.next_share()
        opponent = self._opponent() if tested and self._verdict_counts else Opponent(None)
        self.compare_canaries()
        taken = self._take(FIRST_ROUNDS, self._request.budget_s * (ROUNDS_SHARE if opponent.binary else 1))
        step = self.judge(taken)
        if opponent.other_parameters:
            found = Taken(taken.rounds, self._not_comparable(step.judgement, opponent.obstacle), taken.disturbed)
        elif opponent.binary is not None and (step.pairing_helps or all_of_them or sustained):
            found = self._paired(opponent.binary, opponent.configuration, taken, step)
        else:
            found = self._unpaired(taken, step, opponent.obstacle if step.pairing_helps or sustained else "")
        self._watch(taken)
        return found

    def _unpaired(self, taken: Rounds, step: TimeStep, obstacle: str) -> Taken:
        """Go on with rounds alone; ``obstacle`` is why there are no pairs.  A suspect waits for its second process."""
        budget_s = self._request.budget_s
        while self._verdict_counts and step.rounds_wanted > len(taken.rounds) and taken.seconds < budget_s:
            more = self._take(step.rounds_wanted - len(taken.rounds), budget_s - taken.seconds)
            taken = taken.followed_by(more)
            step = self.judge(taken)
        judgement = self._explained(step.judgement)
        if obstacle and judgement.time is not None:
            figures = msgspec.structs.replace(judgement.time, not_paired=obstacle)
            judgement = msgspec.structs.replace(judgement, time=figures)
        if judgement.verdict is Verdict.SLOWER and self._verdict_counts:
            time_s = max(budget_s, taken.seconds)  # long work takes more than its budget, there as here
            self._worker.suspects[self._key] = UnpairedPending(self._case(taken), self._policy(), judgement, time_s)
        return Taken(taken.rounds, judgement, taken.disturbed)

    def _paired(
        self, baseline: KernelBinary, configuration: Configuration | None, taken: Rounds, step: TimeStep
    ) -> Taken:
        """Let the baseline's own machine code run beside the candidate's; a suspect waits for its second process."""
        zone = self._request.zone
        policy = PairedPolicy(
            delta=zone.delta, epsilon=zone.epsilon, alpha=self._alpha, alpha_faster=self._alpha_faster
        )
        try:
            left_s = self._request.budget_s - taken.seconds
            pairing = self._pair(baseline, policy, taken, left_s, self._request.pair_slot, configuration)
        except LoadError as problem:  # of the baseline: the candidate has run
            return self._unpaired(taken, step, _not_loaded(problem))
        case = self._case(taken)
        notes = (*pairing.remarks, *short_of_time(pairing, policy, self._request.budget_s, taken.seconds))
        step = judge_pairs(
            case, policy, pairing.paired, seeds=(pairing.seed,), notes=notes,
            pair_slot="sustained" if pairing.sustained else "short",
        )  # fmt: skip
        judgement = self._explained(step.judgement)
        if step.confirmation_wanted:
            self._worker.suspects[self._key] = PairedPending(case, policy, pairing, judgement, self._request.budget_s)
        return Taken(taken.rounds, judgement, taken.disturbed)

    def _pair(
        self,
        baseline: KernelBinary,
        policy: PairedPolicy,
        taken: Rounds,
        budget_s: float,
        pair_slot: PairSlot,
        configuration: Configuration | None = None,
    ) -> Pairing:
        """Paired blocks of ``baseline`` against this workload's launch, until ``policy`` decides."""
        request, launch = self._request, self._request.launch
        assert launch is not None
        return pair(
            self._worker.device, self._worker.timer, launch, baseline, policy, seed=self._worker.seed(),
            reset=request.reset, cache=request.cache, pair_slot=pair_slot, duration_ns=taken.rounds[-1].midmean,
            budget_s=budget_s, configuration=configuration,
        )  # fmt: skip

    def _confirm(self) -> Taken:
        """In a confirming process: pair a suspect once more, or take its rounds again, and leave what was found."""
        if self._key not in second_process.wanted(self._worker):
            return Taken(self._take(FIRST_ROUNDS, self._request.budget_s * ROUNDS_SHARE).rounds)
        opponent = self._opponent()
        if opponent.binary is None:
            return self._confirm_rounds(NO_ROUNDS, opponent.obstacle)
        taken = self._take(FIRST_ROUNDS, self._request.budget_s * ROUNDS_SHARE)
        zone = self._request.zone
        policy = PairedPolicy(delta=zone.delta, epsilon=zone.epsilon).confirming()
        left_s = self._request.budget_s - taken.seconds
        try:
            pairing = self._pair(
                opponent.binary, policy, taken, left_s, self._request.pair_slot, opponent.configuration
            )
        except LoadError as problem:  # of the baseline: the candidate has run
            return self._confirm_rounds(taken, _not_loaded(problem))
        second_process.leave(self._worker, of_pairs(self._key, self._identity, pairing))
        return Taken(taken.rounds)

    def _confirm_rounds(self, taken: Rounds, obstacle: str) -> Taken:
        """Go on to the last look, or until the budget is spent: the process that asked judges what there is then."""
        for look in LOOKS[LOOKS.index(FIRST_ROUNDS) :]:
            left_s = self._request.budget_s - taken.seconds
            if look > len(taken.rounds) and (left_s > 0 or not taken.rounds):
                taken = taken.followed_by(self._take(look - len(taken.rounds), left_s))
        found = Confirmation(
            key=self._key, identity=self._identity, rounds=taken.rounds, disturbed=taken.disturbed, not_paired=obstacle
        )
        second_process.leave(self._worker, found)
        return Taken(taken.rounds)

    def _watch(self, taken: Rounds) -> None:
        """Pair the launch with itself if this test is one of the run's A/A self-pairs."""
        launch, worker, node_id = self._request.launch, self._worker, self._key.node_id
        too_long = taken.rounds[-1].midmean > self_pairs.LONGEST_NS
        if launch is None or too_long or node_id not in worker.self_pairs:
            return
        worker.self_pairs.discard(node_id)
        policy = self_pairs.policy_of(self._request.zone)
        pairing = self._pair(launch.binary, policy, taken, self_pairs.BUDGET_S, "short")
        if pairing.paired.blocks:  # else all of them were discarded, and say nothing
            worker.readings[node_id] = self_pairs.reading(self._key.workload, pairing)

    @property
    def _verdict_counts(self) -> bool:
        """An update that takes whatever it finds needs no proof of what changed."""
        return self._worker.options.update in (None, "new")

    def _opponent(self) -> Opponent:
        if self._baseline is None:
            return Opponent(None, "there is no baseline")
        return opponent_of(self._worker.store, self._key, self._baseline, self._request.launch)

    def _not_comparable(self, judgement: Judgement, obstacle: str) -> Judgement:
        reason = f"{obstacle}: record the baseline anew with pytest --update-baselines if that is intended"
        return msgspec.structs.replace(judgement, verdict=Verdict.NOT_COMPARABLE, reason=reason)

    def _explained(self, judgement: Judgement) -> Judgement:
        """The judgement with what may explain it.

        Of a slower launch, what differs in the machine code; of a callable that did not pass, the kernels that take
        its time.
        """
        launch, changes, notes = self._request.launch, judgement.changes, judgement.notes
        if launch is not None and self._baseline is not None and judgement.verdict is Verdict.SLOWER:
            changes = changes_since(self._worker.store, self._key, self._baseline, launch)
        if launch is None and not judgement.verdict.is_pass:
            notes = (*notes, *self._breakdown())
        return msgspec.structs.replace(judgement, changes=changes, notes=notes)

    def _breakdown(self) -> tuple[str, ...]:
        """The kernels of the last batch by their share of its time, where the timer sees kernels."""
        from pytest_gpuperf.compile.cubin.symbol_names import readable

        slots: tuple[dict[str, float], ...] = getattr(self._worker.timer, "kernel_breakdown", ())
        if not slots:
            return ()
        kernels = sorted(slots[-1].items(), key=lambda one: -one[1])
        shown = [f"{readable(name)} {duration(ns)}" for name, ns in kernels[:MOST_KERNELS]]
        if len(kernels) > MOST_KERNELS:
            shown.append(f"and {len(kernels) - MOST_KERNELS} more")
        return (f"its kernels: {', '.join(shown)}",)


def _not_loaded(problem: LoadError) -> str:
    return f"the baseline's machine code cannot be loaded: {problem}"


def short_of_time(pairing: Pairing, policy: PairedPolicy, budget_s: float, before_s: float) -> tuple[str, ...]:
    """What budget would do, where this one ended before there were as many blocks as a verdict takes.

    ``before_s`` went to rounds.  What all blocks call slower takes more of them than a pass, if they can prove it.
    """
    taken, needed = pairing.paired.blocks, unanimous_blocks(policy.beta, policy.blocks_max)
    slower = unanimous_blocks(policy.alpha, policy.blocks_max)
    if pairing.r and min(pairing.r) > math.log1p(policy.delta) and math.isfinite(slower):
        needed = max(needed, slower)
    if (
        pairing.paired.decision is not PairedDecision.INCONCLUSIVE
        or not pairing.blocks
        or not taken < needed < math.inf
    ):
        return ()
    each_s = sum(block.seconds for block in pairing.blocks) / len(pairing.blocks)
    wanted = max(WANTED_BLOCKS, needed) - len(pairing.blocks)
    wanted_s = math.ceil(before_s + pairing.seconds + wanted * each_s)
    remedy = f"raise it with budget_s={wanted_s}, --gpuperf-budget={wanted_s}"
    if wanted_s > MOST_BUDGET_S:
        remedy = f"that would be {wanted_s} s, more than a budget may be ({MOST_BUDGET_S} s): give the launch less work"
    return (
        f"its budget of {budget_s:g} s ended after {numbered(len(pairing.blocks), 'block')}, and a verdict takes "
        f"{needed:.0f} or more: {remedy}",
    )
