"""The outcomes file: what one run of the suite found of the claims and of its workloads.

``--claims-to`` writes it.  It is committed, one line per claim and per
workload in a fixed order, so that the page can be made without a GPU and a diff shows what has changed.  It names the
GPU's model and no single GPU or machine.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from claims import EXPECTED_OF, Claim, load_claims

COMMITTED = Path(__file__).parent / "outcomes" / f"{EXPECTED_OF}.json"

Outcome = Mapping[str, Any]


class BadOutcomes(ValueError):
    """The file is not what ``--claims-to`` wrote on a green run of the suite with these claims."""


@dataclasses.dataclass(frozen=True)
class Run:
    """What ran."""

    gpu: str = ""
    """``NVIDIA H200``; empty without a GPU."""
    driver: str = ""
    """Version of the CUDA runtime."""
    toolchain: str = ""
    """``nvrtc 13.0.88``"""
    plugin: str = ""
    """Version of pytest-gpuperf."""
    date: str = ""
    """UTC, ISO 8601."""
    peaks: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """What the run measured that shares are of: ``copy_bandwidth``, ``fma_throughput``; per second."""
    source: str = "run"
    """``run`` on the GPU, or ``run, counters replayed``: counted before on this model."""

    def filled_from(self, other: Run) -> Run:
        """With the other's words for what this one leaves empty."""
        own = {name: word for name, word in dataclasses.asdict(self).items() if word}
        return dataclasses.replace(other, **{**own, "peaks": {**other.peaks, **self.peaks}})


class Outcomes(NamedTuple):
    """What a run found."""

    run: Run
    claims: Mapping[str, Outcome]
    """By id."""
    workloads: Sequence[Mapping[str, Any]]


def run_of(evidence: str) -> Run:
    """From what the plugin leaves on the report of a test; without a GPU all but the version and the date are empty."""
    import datetime

    import msgspec

    from pytest_gpuperf.model import __version__
    from pytest_gpuperf.model.result import TestEvidence

    found = msgspec.json.decode(evidence, type=TestEvidence)
    known = Run(
        peaks=found.peaks, plugin=__version__, date=datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    )
    toolchain = next((work.toolchain for work in found.workloads if work.toolchain), "")
    if found.device is None:
        return dataclasses.replace(known, toolchain=toolchain)
    device = found.device
    return dataclasses.replace(known, gpu=device.name, driver=device.driver, toolchain=toolchain)


def text_of(found: Outcomes) -> str:
    """The file: claims in the order of ``claim_data``, workloads in that of their tests."""
    claims = [found.claims[claim_id] for claim_id in load_claims() if claim_id in found.claims]
    head = json.dumps(dataclasses.asdict(found.run), ensure_ascii=False)
    body = ",\n".join(
        f'"{name}": [\n' + ",\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n]"
        for name, lines in (("claims", claims), ("workloads", [*map(_kept, found.workloads)]))
    )
    return f'{{"run": {head},\n{body}}}\n'


def _kept(workload: Mapping[str, Any]) -> dict[str, Any]:
    """What a page needs: no counters; times to six significant digits."""
    kept = {name: value for name, value in workload.items() if name != "counters"}
    if "time_ns" in kept:
        kept["time_ns"] = float(f"{kept['time_ns']:.6g}")
    return kept


def read(file: Path) -> Outcomes:
    """Raises ``BadOutcomes`` for a file that is not of this form."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        by_id = {str(line["id"]): line for line in content["claims"]}
        return Outcomes(Run(**content["run"]), by_id, list(content["workloads"]))
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise BadOutcomes(f"{file} cannot be read as outcomes of claims: {problem!r}") from problem


def check(found: Outcomes) -> None:
    """Raises ``BadOutcomes`` unless every claim has one outcome that agrees with ``claim_data`` as it is now."""
    known = load_claims()
    if unknown := sorted(found.claims.keys() - known.keys()):
        raise BadOutcomes(f"there are outcomes of claims that claim_data lacks: {', '.join(unknown)}")
    if missing := [claim for claim in known if claim not in found.claims]:
        raise BadOutcomes(f"there is no outcome of {', '.join(missing)}: run the whole suite until it passes")
    if stale := [why for claim in known.values() for why in disagreements(claim, found.claims[claim.id])]:
        raise BadOutcomes("outcomes are older than claim_data, or of a red run:\n  " + "\n  ".join(stale))


def disagreements(claim: Claim, outcome: Outcome) -> Iterable[str]:
    """What an outcome says otherwise than ``claim_data`` now does."""
    measured, reasons = outcome["measured"], outcome.get("because", [])
    if measured is not None and claim.here is None:
        yield f"{claim.id}: measured {measured:g}, and nothing is compared"
        return
    if (verdict := claim.verdict(measured).value) != outcome["verdict"]:
        yield f"{claim.id}: {outcome['verdict']}, by claim_data {verdict}"
    if len(reasons) != len(claim.because) and measured is not None:
        yield f"{claim.id}: figures of {len(reasons)} reasons, not {len(claim.because)}"
        return
    if outcome.get("gpu", EXPECTED_OF) != EXPECTED_OF:
        return
    bounds = [claim.here, *(reason.here for reason in claim.because)]
    for here, value in zip(bounds, [measured, *reasons], strict=False):
        if here is not None and value is not None and not here.holds(value):
            yield f"{claim.id}: measured {value:g}, `here` is {here}"


def number(figure: float) -> str:
    """Counts in full, all else to three significant digits; no zero with a sign."""
    if math.isinf(figure):
        return str(figure)
    if abs(figure) >= 1000:
        return f"{figure:.0f}"
    return f"{figure or 0.0:.3g}"
