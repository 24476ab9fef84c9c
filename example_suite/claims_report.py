"""The page about the claims, made from the outcomes of a run.

    pytest --gpuperf --gpuperf-ncu=$(python example_suite/hopper_metrics.py) \\
        --claims-to example_suite/outcomes/nvidia-h200.json example_suite
    python example_suite/claims_report.py --output docs/results/claims.md

The second command needs no GPU.  Every claim must have an outcome that agrees with ``claim_data``, and every variant of
a headline table a time, so that a page is never made from a part of the suite or from figures of another state.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import claim_sources
import outcomes
from claims import DOCUMENTS, Claim, load_claims
from headline_tables import IncompleteTable, tables
from outcomes import BadOutcomes, Outcome, Outcomes, Run
from verdicts import NO_EFFECT, TOLERANCE, Said, Verdict

LINK = f"../../{Path(__file__).parent.name}"
"""From the page's folder to the suite."""
TITLES = {"HW": "What the hardware is"}
"""Of families that are not called after their kernels."""

HEADER = """\
# What the documents claim, and what an example run found

The kernels of `example_suite/` follow talks and articles that claim figures, most of them on other GPUs. This page says
of each claim what became of it on one GPU. It is made by

    pytest --gpuperf --gpuperf-ncu=$(python example_suite/hopper_metrics.py) \\
        --claims-to example_suite/outcomes/nvidia-h200.json example_suite
    python example_suite/claims_report.py --output docs/results/claims.md

The second command needs no GPU: the outcomes are in the repository.

{run}

## The documents

{documents}
## How many

{counts}

A verdict follows by rule from what the document says and what was measured. *Reproduced*: within {tolerance:.0%} of the
document's figure, or inside the range it gives; a count has to be equal. *Direction holds, more* or *less*: there is an
effect of the claimed direction, larger or smaller. *Contradicted*: there is none (less than {no_effect:.0%}), or the
opposite one. *Document's erratum*: the document is mistaken in itself. *Not comparable here*: the table says why.
*Not measured*: this run did not look at it.

## The headline tables

The tables that the documents are known for, as measured here. A *gain* is over the variant that has 1.00; *the
document's* is the same gain on the document's GPU. GB/s and GFLOP/s are of the bytes and operations that have to be;
occupancy is what the registers and the block allow, *achieved* what was there on average. Of bytes loaded, one that
several lanes of a warp load together counts once (so that the naive product has more than 0.25 FLOP per byte); bytes of
DRAM are those that were counted, where the data do not stay in the caches.
{tables}
## Claim by claim

*Measured* is the figure that the test asserts, in the unit of the claim. A reason beside a verdict is asserted too,
with the figure in it.
"""
PREDICTIONS = """
## Predictions of our own

No document says these. The suite expects them of its own kernels; they count nowhere above. *Expected* is what the test
asserts on an H200.
"""


def document(found: Outcomes) -> str:
    """The page in Markdown; the same for the same outcomes.  Raises ``BadOutcomes`` and ``IncompleteTable``."""
    outcomes.check(found)
    header = HEADER.format(
        run=_run(found.run), documents=_documents(), counts=_counts(found.claims), tables=tables(found.workloads),
        tolerance=TOLERANCE, no_effect=NO_EFFECT,
    )  # fmt: skip
    said = [claim for claim in load_claims().values() if claim.origin != "prediction"]
    own = [claim for claim in load_claims().values() if claim.origin == "prediction"]
    parts = [_table(family, claims, found.claims) for family, claims in _by_family(said).items()]
    predictions = [_predictions(family, claims, found.claims) for family, claims in _by_family(own).items()]
    return header + "".join(parts) + PREDICTIONS + "".join(predictions)


def _by_family(claims: Iterable[Claim]) -> Mapping[str, Sequence[Claim]]:
    families: dict[str, list[Claim]] = {}
    for claim in claims:
        families.setdefault(claim.family, []).append(claim)
    return families


# --- above the tables ----------------------------------------------------------------------------


def _run(run: Run) -> str:
    how = {
        "run": "the suite on the GPU, with counters",
        "run, counters replayed": "the suite on the GPU, with counters recorded before on this model",
    }
    said = {
        "what ran": how[run.source], "GPU": run.gpu or "none", "driver": run.driver,
        "copy bandwidth, measured": _in_units(run.peaks.get("copy_bandwidth"), 1e12, "TB/s"),
        "FMA throughput, measured": _in_units(run.peaks.get("fma_throughput"), 1e12, "TFLOP/s"),
        "compiler": run.toolchain, "pytest-gpuperf": run.plugin, "date": run.date,
    }  # fmt: skip
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in said.items() if value)])


def _in_units(figure: float | None, of: float, unit: str) -> str:
    return "" if figure is None else f"{outcomes.number(figure / of)} {unit}"


def _documents() -> str:
    return "\n".join(f"### {key}\n\n{title}\n" for key, title in DOCUMENTS.items())


def _counts(of: Mapping[str, Outcome]) -> str:
    said = [claim for claim in load_claims().values() if claim.origin != "prediction"]
    own = len(load_claims()) - len(said)
    verdicts = [of[claim.id]["verdict"] for claim in said]
    rows = [f"| {one.value} | {verdicts.count(one.value)} |" for one in Verdict if one is not Verdict.PREDICTION]
    head = ["| verdict | claims of the documents |", "|---|---|", *rows, f"| all | {len(said)} |"]
    return "\n".join(head) + f"\n\nBesides, there are {own} predictions of our own, which are not counted."


# --- a family ------------------------------------------------------------------------------------


def _table(family: str, claims: Sequence[Claim], of: Mapping[str, Outcome]) -> str:
    head = ["| claim | the document says | where | its figure | measured | verdict |", "|---|---|---|---|---|---|"]
    rows = [
        _row(_id(claim, claims), claim.text, _where(claim), _said(claim), _measured(claim, of), _verdict(claim, of))
        for claim in claims
    ]
    return _section(family, claims, [*head, *rows])


def _predictions(family: str, claims: Sequence[Claim], of: Mapping[str, Outcome]) -> str:
    head = ["| prediction | what we expect | expected | measured |", "|---|---|---|---|"]
    rows = [
        _row(_id(claim, claims), claim.text, _with_unit(str(claim.here or ""), claim.unit), _measured_or_why(claim, of))
        for claim in claims
    ]
    return _section(family, claims, [*head, *rows])


def _section(family: str, claims: Sequence[Claim], lines: Sequence[str]) -> str:
    tests = sorted({claim_sources.module_of()[claim.id] for claim in claims})
    kernels = sorted({kernel for test in tests for kernel in claim_sources.kernels_of(test)})
    files = [*kernels, *tests]
    links = ", ".join(f"[{name}]({LINK}/{name})" for name in files)
    return "\n".join([f"\n### {TITLES.get(family, family)}\n", f"{links}\n", *lines]) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _id(claim: Claim, of_family: Sequence[Claim]) -> str:
    """With a link to its test, where the family's are in several files."""
    modules = claim_sources.module_of()
    if len({modules[one.id] for one in of_family}) == 1:
        return claim.id
    return f"[{claim.id}]({LINK}/{modules[claim.id]})"


def _where(claim: Claim) -> str:
    key = f"[{claim.document}](#{claim.document.lower()})"
    shown = "" if claim.shown in ("", "text") else f" ({claim.shown})"
    gpu = "" if claim.gpu in ("", "any") else f"; {claim.gpu}"
    return f"{key}{', ' if claim.place else ''}{claim.place}{shown}{gpu}"


def _said(claim: Claim) -> str:
    return "" if claim.says is None else _with_unit(range_of(claim.says), claim.unit)


def range_of(said: Said) -> str:
    """``3.87``, ``2 to 5``, ``at least 2``, ``more than 1`` where 1 is no effect."""
    if said.figure is not None:
        return outcomes.number(said.figure)
    low, high = outcomes.number(said.low), outcomes.number(said.high)
    if math.isinf(said.high):
        return f"{'more than' if said.low == said.neutral else 'at least'} {low}"
    if math.isinf(said.low):
        return f"{'less than' if said.high == said.neutral else 'at most'} {high}"
    return low if low == high else f"{low} to {high}"


def _with_unit(figure: str, unit: str) -> str:
    return f"{figure} {unit}" if figure and unit else figure


def _measured(claim: Claim, of: Mapping[str, Outcome]) -> str:
    measured = of[claim.id]["measured"]
    return "" if measured is None else _with_unit(outcomes.number(measured), claim.unit)


def _measured_or_why(claim: Claim, of: Mapping[str, Outcome]) -> str:
    return _measured(claim, of) or f"not measured: {of[claim.id].get('missing', 'no figure')}"


def _verdict(claim: Claim, of: Mapping[str, Outcome]) -> str:
    outcome = of[claim.id]
    reasons = [
        reason.text.replace("{}", outcomes.number(value))
        for reason, value in zip(claim.because, outcome.get("because", []), strict=False)
        if value is not None
    ]
    said = [words for words in (claim.why, *reasons, outcome.get("missing", "")) if words]
    return ": ".join([str(outcome["verdict"]), *(["; ".join(said)] if said else [])])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make the page about the claims from the outcomes of a run.")
    parser.add_argument(
        "--from", dest="outcomes", type=Path, default=outcomes.COMMITTED, metavar="JSON",
        help="what --claims-to wrote; default: that of the repository",
    )  # fmt: skip
    parser.add_argument("--output", type=Path, required=True, metavar="MD", help="the page to write")
    chosen = parser.parse_args(arguments)
    try:
        text = document(outcomes.read(chosen.outcomes))
    except (BadOutcomes, IncompleteTable) as problem:
        print(f"claims_report: {chosen.outcomes}: {problem}", file=sys.stderr)
        return 1
    chosen.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
