"""The document about the claims, made from the outcomes of a run.

    pytest --gpuperf --gpuperf-ncu=$(python example_suite/hopper_metrics.py) \\
        --claims-to outcomes.json example_suite
    python example_suite/claims_report.py --from outcomes.json --output docs/results/claims.md

Every claim must have an outcome, and every variant of a headline table a time, so that a document is never made from a
part of the suite.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from claims import Claim, load_claims
from headline_tables import IncompleteTable, tables

HEADER = """\
# What the documents claim, and what an example run found

The kernels of `example_suite/` follow talks and articles that claim figures, most of them on other GPUs. This page says
of each claim whether it holds where the suite ran: {where}. It is made by

    pytest --gpuperf --gpuperf-ncu=$(python example_suite/hopper_metrics.py) \\
        --claims-to outcomes.json example_suite
    python example_suite/claims_report.py --from outcomes.json --output docs/results/claims.md

{counts}

## The headline tables

The tables that the documents are known for, as measured here. A *gain* is over the variant that has 1.00; *the
document's* is the same gain on the document's GPU. GB/s and GFLOP/s are of the bytes and operations that have to be;
occupancy is what the registers and the block allow, *achieved* what was there on average. Of bytes loaded, one that
several lanes of a warp load together counts once (so that the naive product has more than 0.25 FLOP per byte); bytes of
DRAM are those that were counted, where the data do not stay in the caches.
{tables}
## Claim by claim

*Here* is the figure that the suite looks at, in the terms of the claim: a ratio of times, a share of the measured copy
bandwidth or FMA throughput, a static figure, a counter.
"""

Outcome = Mapping[str, Any]


class Outcomes(NamedTuple):
    """What ``--claims-to`` wrote."""

    claims: Mapping[str, Outcome]
    """By id."""
    workloads: Sequence[Mapping[str, Any]]


class BadOutcomes(ValueError):
    """The file is not one that ``--claims-to`` wrote on a run of the whole suite."""


def read_outcomes(file: Path) -> Outcomes:
    """Raises ``BadOutcomes`` unless the file has exactly one outcome for every claim."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        by_id = {str(line["id"]): line for line in content["claims"]}
        workloads = list(content["workloads"])
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise BadOutcomes(f"{file} cannot be read as outcomes of claims: {problem!r}") from problem
    known = load_claims()
    if unknown := sorted(by_id.keys() - known.keys()):
        raise BadOutcomes(f"{file} has outcomes of claims that claims.json lacks: {', '.join(unknown)}")
    if missing := [claim for claim in known if claim not in by_id]:
        raise BadOutcomes(
            f"{file} has no outcome of {', '.join(missing)}: run the whole suite, on a GPU, until it passes"
        )
    return Outcomes(by_id, workloads)


def document(found: Outcomes) -> str:
    """The page in Markdown; the same for the same outcomes.  Raises ``IncompleteTable``."""
    outcomes = found.claims
    families: dict[str, list[Claim]] = {}
    for claim in load_claims().values():
        families.setdefault(claim.family, []).append(claim)
    gpus = sorted({str(outcome["gpu"]) for outcome in outcomes.values() if "gpu" in outcome})
    header = HEADER.format(where=", ".join(gpus) or "no GPU", counts=_counts(outcomes), tables=tables(found.workloads))
    return header + "".join(_table(family, claims, outcomes) for family, claims in families.items())


def _counts(outcomes: Mapping[str, Outcome]) -> str:
    counts: dict[str, int] = {}
    for claim in load_claims().values():
        kind = str(outcomes[claim.id]["verdict"])
        counts[kind] = counts.get(kind, 0) + 1
    return f"Of {len(outcomes)} claims: {', '.join(f'{kind} {count}' for kind, count in sorted(counts.items()))}."


def _table(family: str, claims: Sequence[Claim], outcomes: Mapping[str, Outcome]) -> str:
    title = "What the hardware is" if family == "HW" else family
    lines = [f"\n### {title}\n", "| claim | the document | on | here | verdict |", "|---|---|---|---|---|"]
    lines += [_row(claim, outcomes) for claim in claims]
    return "\n".join(lines) + "\n"


def _row(claim: Claim, outcomes: Mapping[str, Outcome]) -> str:
    outcome = outcomes[claim.id]
    measured, expected = outcome["measured"], outcome.get("expected")
    here = "" if measured is None else _number(measured) + (f" ({expected} expected)" if expected else "")
    cells = claim.id, claim.text, claim.gpu, here, _verdict(claim, outcomes)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _figure(outcome: Outcome) -> str:
    return "not measured" if outcome["measured"] is None else _number(outcome["measured"])


def _number(figure: float) -> str:
    """Counts in full, all else to three significant digits."""
    return f"{figure:.0f}" if abs(figure) >= 1000 and figure.is_integer() else f"{figure:.3g}"


def _verdict(claim: Claim, outcomes: Mapping[str, Outcome]) -> str:
    verdict, reason = str(outcomes[claim.id]["verdict"]), outcomes[claim.id].get("reason")
    if claim.see:
        reason = ", ".join(f"{other} ({_figure(outcomes[other])})" for other in claim.see)
    return f"{verdict}: {reason}" if reason else verdict


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make the document about the claims from the outcomes of a run.")
    parser.add_argument(
        "--from", dest="outcomes", type=Path, required=True, metavar="JSON", help="what --claims-to wrote"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="MD", help="the document to write")
    chosen = parser.parse_args(arguments)
    try:
        text = document(read_outcomes(chosen.outcomes))
    except (BadOutcomes, IncompleteTable) as problem:
        print(f"claims_report: {problem}", file=sys.stderr)
        return 1
    chosen.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
