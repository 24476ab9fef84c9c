"""What the documents claim about the example kernels, and what a run found.

    pytest --gpuperf --gpuperf-ncu=$(python example_suite/claims metrics) --gpuperf-report=run.json example_suite
    python example_suite/claims check run.json [FAMILY ...]  # figures, verdicts, differences from those on record
    python example_suite/claims record run.json              # keeps the figures, in claims/nvidia-h200.json
    python example_suite/claims report                       # docs/results/claims.md, from these
    python example_suite/claims details                      # docs/results/details.md: the rows that have the figures

``data/FAMILY.json`` has a claim a line: what a document says, where, of which GPU, and the formula of the figure here.
A formula is a Python expression over the workloads of ``test_FAMILY.py``; ``names_of`` lists its names.  The verdict
follows from both figures, by the rule of ``Claim.verdict``.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import counters

sys.path.insert(0, str(Path(__file__).parents[2]))

from pytest_gpuperf.baselines.cubin_store import read_cubin
from pytest_gpuperf.compile.machine_code.elf import read_elf
from pytest_gpuperf.compile.machine_code.sass import disassemble

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GPU, ARCH = "nvidia-h200", "sm_90"
ON_RECORD, PAGE = HERE / f"{GPU}.json", ROOT / "docs" / "results" / "claims.md"
TOLERANCE, NO_EFFECT = 0.15, 0.01
"""Of a document's single figure; and of the neutral one, within which there is no effect."""
NOISE = {"time": 0.03, "rate": 0.03, "counter": 0.002}
"""By so much a figure may change from run to run; 3 % for all that depends on the chip."""
REPRODUCED, MORE, LESS = "reproduced", "direction holds, more", "direction holds, less"
CONTRADICTED, ERRATUM, NOT_COMPARABLE = "contradicted", "document's erratum", "not comparable here"
VERDICTS = (REPRODUCED, MORE, LESS, CONTRADICTED, ERRATUM, NOT_COMPARABLE)
SAME_CHIP = ("any", "Hopper", "H100", "H200")
ABSENT = ("stack_bytes", "spill_store_bytes", "spill_load_bytes", "shared_bytes", "barriers", "dynamic_shared_bytes")
"""Left out of a report where they are 0."""
KEYS = frozenset({
    "id", "kind", "text", "document", "place", "shown", "gpu", "unit", "says", "exact", "can", "chip", "formula",
    "because", "origin", "why", "neutral",
})  # fmt: skip


class BadClaim(ValueError):
    """A claim, or what a run found of it, cannot stand; the message names it."""


class Claim(NamedTuple):
    """One line of ``data``."""

    family: str
    given: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        if name not in KEYS:
            raise AttributeError(name)
        return self.given.get(name, "")

    @property
    def bounds(self) -> tuple[float, float]:
        """What is as the document says, both included."""
        says = self.given["says"]
        if isinstance(says, list):
            return (-math.inf if says[0] is None else says[0], math.inf if says[1] is None else says[1])
        margin = 0.0 if self.exact else abs(says) * TOLERANCE
        return says - margin, says + margin

    @property
    def neutral_figure(self) -> float | None:
        """The figure of no effect: 1 for a ratio.  None where there is no direction: as fast as, so many."""
        neutral = self.given.get("neutral", 1.0 if self.unit.startswith("x") else None)
        low, high = self.bounds
        directed = neutral is not None and (low >= neutral or high <= neutral) and low + high != 2 * neutral
        return neutral if directed else None

    def verdict(self, figure: float | None) -> str:
        """*Reproduced* within 15 % of a figure or inside a range, and beyond the neutral figure if there is one.

        Else what holds is the direction, or nothing.  Of what *can* happen the direction is all.  A figure of another
        chip, without a direction, cannot be held against this one.
        """
        if self.origin == "erratum":
            return ERRATUM
        if self.given.get("says") is None or figure is None:
            return NOT_COMPARABLE
        (low, high), neutral = self.bounds, self.neutral_figure
        inside = low <= figure <= high
        if neutral is None:
            elsewhere = (self.kind in ("time", "rate") or self.chip) and self.gpu not in SAME_CHIP
            return REPRODUCED if inside else NOT_COMPARABLE if elsewhere else CONTRADICTED
        up = low >= neutral
        effect = figure - neutral if up else neutral - figure
        if effect <= NO_EFFECT * abs(neutral):
            return CONTRADICTED
        if inside or self.can:
            return REPRODUCED
        return MORE if (figure > high if up else figure < low) else LESS

    def border(self, figure: float) -> str:
        """Another verdict that noise could give this figure; empty if there is none."""
        noise = 0.0 if self.exact else 0.03 if self.chip else NOISE.get(self.kind, 0.0)
        near = {self.verdict(figure * (1 + each)) for each in (-noise, noise)} - {self.verdict(figure)}
        return next(iter(near), "")


@functools.cache
def claims() -> dict[str, Claim]:
    """By id, family after family.  Raises ``BadClaim``."""
    found: dict[str, Claim] = {}
    for file in sorted((HERE / "data").glob("*.json")):
        for line in json.loads(file.read_text(encoding="utf-8")):
            claim = Claim(file.stem, line)
            if unknown := line.keys() - KEYS:
                raise BadClaim(f"{file.name}: {claim.id} has {', '.join(sorted(unknown))}, which no claim has")
            if claim.id in found or not claim.id:
                raise BadClaim(f"{file.name}: {claim.id or line} is not the only claim of its id")
            if ("says" in line) != ("formula" in line) and claim.origin != "erratum":
                raise BadClaim(f"{claim.id} needs both says and formula, or neither and a why")
            if ("says" not in line or claim.origin) and not claim.why:
                raise BadClaim(f"{claim.id} needs a why")
            if claim.can and claim.neutral_figure is None:
                raise BadClaim(f"{claim.id}: what can happen needs a direction")
            found[claim.id] = claim
    return found


# --- a run ---------------------------------------------------------------------------------------


class Missing(LookupError):
    """The run has not measured what a formula is about."""


class Workload:
    """One workload of a report, with the names of its static figures on one architecture."""

    def __init__(
        self, work: Mapping[str, Any], arch: str = ARCH, read: list[tuple[Workload, str]] | None = None
    ) -> None:
        self._work, self._read = work, [] if read is None else read
        """Every counter that is read is noted in ``read``."""
        self.workload, self.counters = work["key"]["workload"], work.get("counters", {})
        self._static = next((work["static"][one] for one in (arch, f"{arch}a") if one in work.get("static", {})), None)

    def on(self, arch: str) -> Workload:
        return Workload(self._work, arch)

    def __getattr__(self, name: str) -> Any:
        """``registers``, ``stack_bytes``, ``warps_per_sm``, ``grid``, ... of its machine code; ``bytes``, ``flops``."""
        if name in ("bytes", "flops"):
            found = (self._work.get("time") or {}).get(name)
        else:
            static = self._static or {}
            occupancy = static.get("occupancy") or {}
            profile = dict.fromkeys(ABSENT, 0) | static["profile"] if static else {}
            found = (profile | static | occupancy | {"occupancy": occupancy.get("fraction")}).get(name)
        if found is None:
            raise Missing(f"{self.workload} has no {name}")
        return found

    @property
    def time_ns(self) -> float:
        rounds = (self._work.get("time") or {}).get("rounds")
        if not rounds:
            raise Missing(f"{self.workload} was not timed")
        return math.exp(math.fsum(map(math.log, rounds)) / len(rounds))

    @property
    def spill_bytes(self) -> int:
        return self.spill_store_bytes + self.spill_load_bytes

    @property
    def threads(self) -> int:
        return math.prod(self.grid) * math.prod(self.block)

    @property
    def bandwidth(self) -> float:
        """Bytes per second."""
        return self.bytes / self.time_ns * 1e9

    @property
    def flop_rate(self) -> float:
        """Operations per second."""
        return self.flops / self.time_ns * 1e9

    def counter(self, metric: str) -> float:
        self._read.append((self, metric))
        if metric not in self.counters:
            raise Missing(f"{metric} was not collected of {self.workload}")
        return self.counters[metric]

    def sass(self, opcode: str) -> int:
        """Instructions of this opcode, with these modifiers or more."""
        cubin, symbol = self.cubin, (self._static or {}).get("symbol") or self.kernel
        found = _opcodes(cubin, symbol, next(iter(one for one in ("sm_90a", ARCH) if one in self._work["static"])))
        return sum(n for name, n in found.items() if name == opcode or name.startswith(f"{opcode}."))


@functools.cache
def _opcodes(cubin: str, symbol: str, arch: str) -> Counter[str]:
    section = read_elf(read_cubin(ROOT / "baselines", cubin)).section(f".text.{symbol}")
    assert section is not None, f"{symbol} is not in {cubin}"
    return Counter(one.opcode for one in disassemble(arch, {"code": bytes(section.data)})["code"])


def names_of(report: Mapping[str, Any], family: str, read: list[tuple[Workload, str]] | None = None) -> dict[str, Any]:
    """The names of a family's formulas; what they read of counters is noted in ``read``."""

    def tests(of: str) -> list[Mapping[str, Any]]:
        return [test for test in report["tests"] if test["module"].endswith(f"/test_{of}.py")]

    def w(workload: str, test: str = "", family: str = family) -> Workload:
        """A workload, of the one test that measures it, or only compiles it; or of ``test``."""
        found = [
            work for one in tests(family) if test in ("", one["test"]) for work in one.get("workloads", ())
            if work["key"]["workload"] == workload
        ]  # fmt: skip
        found = [work for work in found if "identity" in work] or found
        if len(found) != 1:
            raise Missing(f"{len(found)} workloads of {family} {test} are {workload}")
        return Workload(found[0], read=read)

    def p(name: str) -> float:
        """What a test recorded as a property."""
        found = [one["properties"][name] for one in tests(family) if name in one.get("properties", {})]
        if not found:
            raise Missing(f"no test of {family} recorded {name}")
        return float(found[0])

    def peak(name: str) -> float:
        found = [one["peaks"][name] for one in report["tests"] if name in one.get("peaks", {})]
        if not found:
            raise Missing(f"{name} was not measured")
        return float(found[0])

    def same(figures: Sequence[float]) -> float:
        (figure,) = set(figures)
        return figure

    device = next((test["device"] for test in report["tests"] if test.get("device")), {})
    plain = (min, max, sum, abs, len, range, zip, sorted, all, any, round, float, int, set, list)
    return {
        "__builtins__": {}, "math": math, **{one.__name__: one for one in plain}, **counters.figures(),
        "w": w, "t": lambda *names, **more: w(*names, **more).time_ns, "p": p, "peak": peak, "same": same,
        "sm_count": device.get("sm_count", 132),
    }  # fmt: skip


def evaluated(
    report: Mapping[str, Any], chosen: Sequence[Claim], read: list[tuple[Workload, str]] | None = None
) -> Iterator[tuple[Claim, list[float], str]]:
    """Of each claim its figure and those of its reasons, or none and why; ``read`` as for ``names_of``."""
    for claim in chosen:
        formulas = [claim.formula, *(reason["formula"] for reason in claim.because or ())]
        try:
            names = names_of(report, claim.family, read)
            yield claim, [float(eval(one, names)) for one in formulas if one], ""
        except Missing as problem:
            yield claim, [], str(problem)
        except Exception as problem:  # noqa: BLE001 whatever a formula raises
            yield claim, [], f"{type(problem).__name__}: {problem}"


def on_record() -> dict[str, Any]:
    """The run whose figures are kept, and these by claim."""
    return json.loads(ON_RECORD.read_text(encoding="utf-8")) if ON_RECORD.exists() else {"run": {}, "figures": {}}


def check(report: Mapping[str, Any], families: Sequence[str]) -> int:
    """Print every claim's figure and verdict; 1 if one is missing, near a border, or not as on record."""
    chosen = [claim for claim in claims().values() if not families or claim.family in families]
    kept, wrong = on_record()["figures"], 0
    for claim, found, problem in evaluated(report, chosen):
        figure, was = (found or [None])[0], kept.get(claim.id, [None])[0]
        verdict = claim.verdict(figure)
        if not problem and figure is not None:
            near = claim.border(figure)
            problem = f"noise could make it: {near}" if near else ""
            if was is not None and claim.verdict(was) != verdict:
                problem = f"on record {was:.6g}: {claim.verdict(was)}"
        wrong += bool(problem)
        shown = "" if figure is None else f"{figure:.6g}"
        says, problem = str(claim.given.get("says", "")), f"  !! {problem}" if problem else ""
        print(f"{claim.family:<24} {claim.id:<8} {shown:>12} {says:>14} {claim.unit:<10} {verdict}{problem}")
    print(f"{len(chosen)} claims, {wrong} wrong")
    return int(wrong > 0)


def record(report: Mapping[str, Any]) -> int:
    """Keep the figures of a run, to six digits; those it lacks stay."""
    kept = on_record()["figures"]
    for claim, found, problem in evaluated(report, [*claims().values()]):
        if found:
            kept[claim.id] = [float(f"{one:.6g}") for one in found]
        elif problem:
            print(f"{claim.id} keeps its figure: {problem}")
    device = next((test["device"] for test in report["tests"] if test.get("device")), {})
    run = {
        "GPU": device.get("name", ""), "driver": device.get("driver", ""), "compiler": report["toolchains"][0],
        "pytest-gpuperf": report["plugin"], "date": report["date"][:10],
    }  # fmt: skip
    lines = ",\n".join(f"{json.dumps(one)}: {json.dumps(kept[one])}" for one in claims() if one in kept)
    ON_RECORD.write_text(f'{{"run": {json.dumps(run)},\n"figures": {{\n{lines}\n}}}}\n', encoding="utf-8")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("check", "record"):
        one = commands.add_parser(name)
        one.add_argument("report", type=Path, help="what --gpuperf-report=FILE.json wrote")
    commands.choices["check"].add_argument("families", nargs="*")
    commands.add_parser("metrics")
    commands.add_parser("report").add_argument("--output", type=Path, default=PAGE)
    commands.add_parser("details").add_argument("--output", type=Path, default=PAGE.with_name("details.md"))
    chosen = parser.parse_args(arguments)
    if chosen.command == "metrics":
        print(",".join(counters.all_metrics()))
        return 0
    if chosen.command == "report":
        import page

        chosen.output.write_text(page.text_of(claims(), on_record()), encoding="utf-8")
        return 0
    if chosen.command == "details":
        import details

        chosen.output.write_text(details.text_of(claims(), details.recorded_report(), evaluated), encoding="utf-8")
        return 0
    report = json.loads(chosen.report.read_text(encoding="utf-8"))
    return check(report, chosen.families) if chosen.command == "check" else record(report)


if __name__ == "__main__":
    sys.exit(main())
