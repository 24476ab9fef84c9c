"""Verdicts to a passed or failed test, and the words that go with it.

Pure: judgements and options in, effects and text out.  ``POLICY`` is the whole of it; docs/reference/verdicts.md,
"Verdicts", is made from it.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import Advice, Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.report.message import workload_lines
from pytest_gpuperf.report.remarks import STALE, accepting_command
from pytest_gpuperf.update import accepts


class Effect(enum.Enum):
    PASS = "pass"
    REMARK = "pass, with a remark"
    WARN = "a warning"
    FAIL = "fail"


@dataclasses.dataclass(frozen=True)
class Treatment:
    """One row of the policy: what a verdict does, and which option makes it fail."""

    usually: Effect
    fails_by: str = ""
    """A field of ``Options`` that is ``fail`` or true then; empty: no option changes it."""


POLICY: Mapping[Verdict, Treatment] = MappingProxyType({
    Verdict.UNCHANGED: Treatment(Effect.PASS),
    Verdict.SAME: Treatment(Effect.PASS),
    Verdict.FASTER: Treatment(Effect.REMARK, "strict"),
    Verdict.BETTER: Treatment(Effect.REMARK, "strict"),
    Verdict.SLOWER: Treatment(Effect.FAIL),
    Verdict.WORSE: Treatment(Effect.FAIL),
    Verdict.INCONCLUSIVE: Treatment(Effect.WARN, "undecided"),
    Verdict.NOT_COMPARABLE: Treatment(Effect.WARN, "open"),
    Verdict.NEW: Treatment(Effect.WARN, "new"),
    Verdict.NOT_MEASURED: Treatment(Effect.WARN, "open"),
})  # fmt: skip
"""A row for every verdict; ``open`` is ``fail`` under CI unless it was given."""
WITHOUT_GPU = Treatment(Effect.WARN, "undecided")
"""Treatment of a missing record on a machine without a GPU, if none is required."""


def treatment_of(judgement: Judgement) -> Treatment:
    if judgement.verdict is Verdict.NOT_MEASURED and judgement.kind == "counters":
        return Treatment(Effect.WARN)
    return POLICY[judgement.verdict]


def effect(judgement: Judgement, options: Options) -> Effect:
    return _effect_of(treatment_of(judgement), options)


def missing_fails(options: Options, *, needs_gpu: bool = False) -> bool:
    """Whether a missing record, which no test answers for, fails the run under these options."""
    return _effect_of(WITHOUT_GPU if needs_gpu else POLICY[Verdict.NOT_MEASURED], options) is Effect.FAIL


def _effect_of(treatment: Treatment, options: Options) -> Effect:
    asked_for = bool(treatment.fails_by) and getattr(options, treatment.fails_by) in ("fail", True)
    found = Effect.FAIL if asked_for else treatment.usually
    return Effect.WARN if found is Effect.FAIL and options.advisory else found


def failures(judgements: Iterable[Judgement], options: Options) -> list[Judgement]:
    """The judgements that fail their test under these options."""
    return [one for one in judgements if effect(one, options) is Effect.FAIL and not accepts(one, options)]


REMEDIES = {
    Verdict.NOT_COMPARABLE: "an uncompared workload proves nothing: --gpuperf-open=warn lets it pass",
    Verdict.NEW: "no baseline yet: record one with {record} and commit it",
    Verdict.FASTER: STALE,
    Verdict.BETTER: STALE,
}  # fmt: skip
"""By verdict; ``{accept}`` and ``{record}`` are commands of an update."""


def failure_message(
    failed: Sequence[Judgement], advice: Mapping[Key, Sequence[Advice]] = MappingProxyType({}), revision: str = "",
    repeated: Sequence[str] = (),
) -> str:  # fmt: skip
    """The whole message of a failed gate: what got worse, by how much, of what cause, what to do.

    ``advice`` are the causes found, by workload; ``revision`` is what was compared with, where that was no baseline;
    ``repeated`` are flags of the run that an update needs too.
    """
    lines: list[str] = []
    for key in dict.fromkeys(judgement.key for judgement in failed):
        lines += workload_lines([judgement for judgement in failed if judgement.key == key], advice.get(key, ()))
    accept = accepting_command(failed, repeated)
    if revision:
        lines.append(f"Compared with {revision}. To accept an intended change, use committed baselines.")
        return "\n".join(lines)
    if any(judgement.may_be_intended for judgement in failed):
        lines.append(f"If this change is intended: {accept}, and commit what it writes.")
    record = accepting_command(failed, repeated, "=new")
    remedies = [REMEDIES.get(judgement.verdict, "") for judgement in failed if not judgement.renamed]
    lines += dict.fromkeys(remedy.format(accept=accept, record=record) for remedy in remedies if remedy)
    return "\n".join(lines)
