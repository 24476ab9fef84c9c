"""Verdicts to a passed or failed test, and the words that go with it.

Pure: judgements and options in, text out.  Which verdicts fail is in docs/reference/verdicts.md, "Verdicts".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.model.advice import Advice
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import UNDECIDED, Judgement, Verdict
from pytest_gpuperf.report.message import workload_lines
from pytest_gpuperf.report.remarks import STALE


def fails(judgement: Judgement, options: Options) -> bool:
    """Whether this verdict fails its test under these options."""
    verdict = judgement.verdict
    if verdict.is_regression:
        return True
    if verdict is Verdict.NEW:
        return options.missing == "fail"
    if verdict is Verdict.NOT_MEASURED and judgement.kind != "counters":
        return options.unreached == "fail"
    if verdict is Verdict.INCONCLUSIVE:
        return options.inconclusive == "fail"
    if verdict in (Verdict.FASTER, Verdict.BETTER):
        return options.strict
    return False


def will_be_recorded(judgement: Judgement, options: Options) -> bool:
    """Whether ``--update-baselines`` accepts what this judgement found, so that it need not fail."""
    if options.update is None:
        return False
    if judgement.verdict is Verdict.NOT_MEASURED:
        return False
    return judgement.verdict is Verdict.NEW or options.update in ("changed", "all")


def failures(judgements: Iterable[Judgement], options: Options) -> list[Judgement]:
    """The judgements that fail their test."""
    return [j for j in judgements if fails(j, options) and not will_be_recorded(j, options)]


REMEDIES = {
    Verdict.NEW: "no baseline yet: record one with pytest{ncu} --update-baselines=new and commit it",
    Verdict.FASTER: STALE,
    Verdict.BETTER: STALE,
    Verdict.INCONCLUSIVE: "undecided within the budget: a quieter GPU or a larger --gpuperf-budget decides it",
}  # fmt: skip
"""By verdict; ``{ncu}`` is the flag that an update needs to take counters too."""
NO_ADVICE: Mapping[Key, Sequence[Advice]] = MappingProxyType({})


def failure_message(failed: Sequence[Judgement], advice: Mapping[Key, Sequence[Advice]] = NO_ADVICE) -> str:
    """The whole message of a failed gate: what got worse, by how much, of what cause, what to do.

    ``advice`` are the causes found, by workload.
    """
    lines: list[str] = []
    for key in dict.fromkeys(judgement.key for judgement in failed):
        lines += workload_lines([judgement for judgement in failed if judgement.key == key], advice.get(key, ()))
    ncu = " --gpuperf-ncu" if any(judgement.kind == "counters" for judgement in failed) else ""
    if any(j.verdict.is_regression for j in failed):
        lines.append(f"If this change is intended: pytest{ncu} --update-baselines, and commit what it writes.")
    lines += dict.fromkeys(words.format(ncu=ncu) for words in map(_remedy, failed) if words)
    return "\n".join(lines)


def _remedy(judgement: Judgement) -> str:
    """What to do about a verdict that is no regression; empty where its own reason says it."""
    if judgement.verdict is Verdict.INCONCLUSIVE and not judgement.reason.startswith(UNDECIDED):
        return ""
    return REMEDIES.get(judgement.verdict, "")
