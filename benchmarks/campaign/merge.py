"""All lines of results to tables, promises held against them, and replay fixtures."""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import Any

from pytest_gpuperf.judge.block_decision import judge_blocks
from pytest_gpuperf.judge.policy import Decision, Policy
from scipy import stats

from campaign.cells import COPIES, FINEST, GRAPH_LEAST_NS, SHORT, Cell
from campaign.child import load_plan
from pytest_gpuperf.model.timer_names import TIMERS

Line = dict[str, Any]
ENOUGH = 50
"""Verdicts of a cell below which a share of SLOWER says too little."""
FALLS_SHORT = 0.98
"""A copy whose slowdown on a GPU is less than this share of the nominal one is not held against the nominal promise."""
UNITS = 10_000_000
"""Recorded log ratios are kept as whole numbers of 1e-7."""


def merge(folders: Sequence[Path], output: Path | None, replays: Path | None) -> int:
    """Print the tables; 1 if a promise is broken."""
    lines = [line for folder in folders for path in sorted(folder.glob("*.jsonl")) for line in read(path)]
    durations = {name: subject.duration_ns for name, subject in load_plan(folders[0]).items()}
    text, broken = report(lines, durations)
    print(text)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
    if replays is not None:
        write_replays(lines, durations, replays)
    return int(bool(broken))


def read(path: Path) -> list[Line]:
    """Lines of one process; a last line that was cut short is left out."""
    found = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(text))
        except json.JSONDecodeError:
            print(f"{path.name}: a line was cut short and is left out", file=sys.stderr)
    return found


def report(lines: Sequence[Line], durations: dict[str, float]) -> tuple[str, list[str]]:
    """The whole document, and the promises that are broken."""
    verdicts = [line for line in lines if line["kind"] == "verdict" and line["part"] != "blocks"]
    parts = [_head(lines)]
    broken: list[str] = []
    for timer in TIMERS:
        of_timer = [line for line in verdicts if line["timer"] == timer]
        if not of_timer:
            continue
        cells = gathered(of_timer)
        parts += [
            f"## Timer {timer}", *_false_alarms(of_timer), _table(cells, durations), *_coverage(cells),
            *_fallen_short(cells),
        ]  # fmt: skip
        broken += [f"{timer}: {text}" for text in promises(cells, timer, durations)]
    verdict = "\n".join(f"* BROKEN: {text}" for text in broken) or "Every promise that these results reach holds."
    return "\n\n".join([*parts, "## Promises", verdict]) + "\n", broken


def _head(lines: Sequence[Line]) -> str:
    processes = [line for line in lines if line["kind"] == "process"]
    gpus = sorted({line["gpu"] for line in processes})
    machines = sorted({f"{p['model']}, driver {p['driver']}, CUDA {p['cuda']}, CuPy {p['cupy']}" for p in processes})
    timers = sorted({f"{p['timer']} (tick {p['tick_ns']:.1f} ns)" for p in processes})
    throttled = sum(
        bool(line["state"].get("throttle_reasons")) for line in lines if line["kind"] in ("process", "end")
    )  # fmt: skip
    return "\n".join([
        "# Paired verdicts of known truth", "",
        "Made by `python benchmarks/paired_campaign.py`; its first lines say how. Ratios are candidate over baseline.",
        "", f"* {'; '.join(machines)}", f"* {len(processes)} fresh processes on {len(gpus)} GPUs ({', '.join(gpus)}; "
        f"labels are hashes of the UUIDs); throttled at {throttled} of their starts and ends",
        f"* timers: {', '.join(timers)}",
    ])  # fmt: skip


def gathered(verdicts: Iterable[Line]) -> dict[Cell, list[Line]]:
    """First verdicts by cell, each with the one that confirms it under ``confirmation``."""
    confirmations = {line["of"]: line for line in verdicts if line["of"]}
    cells: dict[Cell, list[Line]] = defaultdict(list)
    for line in verdicts:
        if not line["of"]:
            cells[Cell.of(line)].append({**line, "confirmation": confirmations.get(line["id"])})
    return dict(sorted(cells.items(), key=lambda item: (item[0].delta, item[0].percent, item[0].subject)))


def is_red(line: Line) -> bool:
    """SLOWER in two processes; one whose confirmation never ran counts by its first process alone."""
    confirmation = line["confirmation"]
    return line["decision"] == "slower" and (confirmation is None or confirmation["decision"] == "slower")


def _false_alarms(verdicts: Sequence[Line]) -> list[str]:
    same = [line for line in verdicts if line["percent"] == 0 and not line["of"]]
    if not same:
        return []
    counts = {word: sum(line["decision"] == word for line in same) for word in ("slower", "faster", "inconclusive")}
    bound = stats.beta.ppf(0.95, counts["slower"] + 1, len(same) - counts["slower"])
    return [
        f"**Same machine code in two modules:** {len(same)} verdicts in {len({line['process'] for line in same})} "
        f"processes on {len({line['gpu'] for line in same})} GPUs: {counts['slower']} SLOWER (in the first process; "
        f"rate below {bound:.2%} with 95 % confidence), {counts['faster']} FASTER, {counts['inconclusive']} "
        f"inconclusive."
    ]  # fmt: skip


def _table(cells: dict[Cell, list[Line]], durations: dict[str, float]) -> str:
    rows = [
        "| tolerance | kernel | us | true ratio | verdicts | SLOWER first | SLOWER confirmed | FASTER | passed | "
        "inconclusive | interval holds truth | blocks | block sd | seconds | confirm s |",
        "|---" * 15 + "|",
    ]
    rows += [_row(cell, lines, durations) for cell, lines in cells.items()]
    return "\n".join(rows)


def truths(cell: Cell, lines: Sequence[Line]) -> dict[str, float]:
    """The true ratio on each GPU: by instruction count for loops, for copies the mean of all its blocks there."""
    gpus = {line["gpu"] for line in lines}
    if cell.percent == 0 or cell.subject not in COPIES:
        return {gpu: float(lines[0]["known"]) for gpu in gpus}
    return {gpu: _mean_ratio([line for line in lines if line["gpu"] == gpu]) for gpu in gpus}


def _mean_ratio(lines: Sequence[Line]) -> float:
    weights = [line["taken"] - line["discarded"] for line in lines]
    total = sum(line["mean_r"] * weight for line, weight in zip(lines, weights, strict=True))
    return math.exp(total / max(sum(weights), 1))


def _row(cell: Cell, lines: Sequence[Line], durations: dict[str, float]) -> str:
    def count(*decisions: str) -> int:
        return sum(line["decision"] in decisions for line in lines)

    confirmations = [line["confirmation"] for line in lines if line["confirmation"]]
    inside, with_interval = covered(cell, lines)
    true = sorted(truths(cell, lines).values())
    true_ratio = f"{true[0]:.5f}" + (f" to {true[-1]:.5f}" if true[-1] - true[0] >= 5e-6 else "")
    confirm_s = f"{statistics.median(one['seconds'] for one in confirmations):.2f}" if confirmations else "-"
    spread = math.sqrt(statistics.fmean(line["sd_r"] ** 2 for line in lines))
    cells = [
        f"{cell.delta:.3%}", cell.subject, f"{durations[cell.subject] / 1000:.4g}", true_ratio, str(len(lines)),
        str(count("slower")), f"{sum(is_red(line) for line in lines)} (of {len(confirmations)} tried)",
        str(count("faster")), str(count("same", "not slower")), str(count("inconclusive")),
        f"{inside} of {with_interval}", f"{statistics.median(line['blocks'] for line in lines):g}", f"{spread:.3%}",
        f"{statistics.median(line['seconds'] for line in lines):.2f}", confirm_s,
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def covered(cell: Cell, lines: Sequence[Line]) -> tuple[int, int]:
    """How many intervals hold the true ratio, of how many."""
    true = truths(cell, lines)
    found = [line for line in lines if line["interval"]]
    return sum(line["interval"][0] <= true[line["gpu"]] <= line["interval"][1] for line in found), len(found)


def _coverage(cells: dict[Cell, list[Line]]) -> list[str]:
    counts = [covered(cell, lines) for cell, lines in cells.items()]
    inside, total = sum(first for first, _ in counts), sum(second for _, second in counts)
    if not total:
        return []
    low, high = stats.binomtest(inside, total).proportion_ci(0.95)
    text = f"**Intervals:** {inside} of {total} hold the true ratio ({inside / total:.1%}, 95 % between {low:.1%} and "
    return [text + f"{high:.1%})."]


def promises(cells: dict[Cell, list[Line]], timer: str, durations: dict[str, float]) -> list[str]:
    """Acceptance lines 1, 2 and 4, as far as there are results for them; without CUPTI from 20 us on."""
    broken = []
    for cell, lines in cells.items():
        if timer != "cupti" and durations[cell.subject] < GRAPH_LEAST_NS:
            continue
        where = f"{cell.subject} +{cell.percent:g} % ({cell.delta:.2%})"
        wanted, held = _wanted(cell), held_to_promise(cell, lines)
        found = sum(map(is_red, held))
        if wanted is not None and len(held) >= ENOUGH and found < math.floor(wanted * len(held)):
            broken.append(f"{where}: {found} of {len(held)} SLOWER, wanted {wanted:.0%}")
        red = sum(map(is_red, lines))
        if cell.percent / 100 <= cell.delta and red:
            broken.append(f"{where}: {red} of {len(lines)} SLOWER, wanted none")
        if cell.percent == 0 and any(line["decision"] in ("slower", "faster") for line in lines):
            broken.append(f"{where}: SLOWER or FASTER in a first process without any difference")
    inside = [covered(cell, lines) for cell, lines in cells.items()]
    if sum(total for _, total in inside) and sum(i for i, _ in inside) < 0.95 * sum(total for _, total in inside):
        broken.append("intervals hold the true ratio in less than 95 of 100 verdicts")
    return broken


def held_to_promise(cell: Cell, lines: Sequence[Line]) -> list[Line]:
    """Verdicts on the GPUs where the kernel is as much slower as its cell says: a copy's slowdown differs a little."""
    true = truths(cell, lines)
    return [line for line in lines if not falls_short(cell, true[line["gpu"]])]


def falls_short(cell: Cell, true: float) -> bool:
    """Whether a copy of this true ratio is too little slower to be held to its cell's promise."""
    return cell.subject in COPIES and true - 1 < FALLS_SHORT * cell.percent / 100


def _fallen_short(cells: dict[Cell, list[Line]]) -> list[str]:
    """What no promise is held against, with what became of it."""
    rows = []
    for cell, lines in cells.items():
        if _wanted(cell) is None:
            continue
        for gpu, true in sorted(truths(cell, lines).items()):
            if falls_short(cell, true):
                on_it = [line for line in lines if line["gpu"] == gpu]
                red = sum(map(is_red, on_it))
                rows.append(f"* {cell.subject} on GPU {gpu}: +{true - 1:.3%}, {red} of {len(on_it)} SLOWER")
    if not rows:
        return []
    intro = (
        "**Copies that were less slower on a GPU than their name says** (sizes are chosen on one GPU of the campaign; "
        "each of the others has a truth of its own), so that no promise is held against these verdicts:"
    )
    return ["\n".join([intro, "", *rows])]


def _wanted(cell: Cell) -> float | None:
    """Share of SLOWER that is promised; None where nothing is."""
    promised = {(1.0, 0.005): 0.98, (2.0, 0.005): 1.0, (0.5, 0.0025): 0.98}
    if cell.subject == SHORT:
        return 0.98 if (cell.percent, cell.delta) == (2.0, 0.005) else None
    if cell.subject in FINEST and cell.delta < 0.0025:
        return None  # reported, not promised
    return promised.get((cell.percent, cell.delta))


def pinned(r: Sequence[float], policy: Policy) -> list[list[str | int]]:
    """The verdicts of one run after another on these blocks, each with the blocks it used; a rest decides nothing."""
    found: list[list[str | int]] = []
    start = 0
    while start < len(r):
        one = judge_blocks(r[start : start + policy.blocks_max], policy)
        if one.decision is Decision.CONTINUE:
            break
        found.append([one.decision.value, one.blocks])
        start += one.blocks
    return found


def write_replays(lines: Sequence[Line], durations: dict[str, float], folder: Path) -> None:
    """One JSON file per kernel: block values as taken, which slot order each had, and what they were.

    A slowdown that was not recorded this time keeps the sequence that is on file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    recorded: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        if line["kind"] == "verdict" and line["part"] == "blocks":
            recorded[line["subject"], line["timer"]].append(line)
    models = {line["process"]: line["model"] for line in lines if line["kind"] == "process"}
    for (subject, timer), sequences in recorded.items():
        name = re.sub(r"[^a-z0-9]+", "-", f"{subject} {timer}".lower()).strip("-")
        file = folder / f"{name}.json"
        taken = [
            {
                "percent": line["percent"], "ratio": round(line["known"], 7), "size": line["size"],
                "seed": line["seed"], "discarded": line["discarded"], "orders": line["orders"],
                "r": (r := [round(value * UNITS) for value in line["r"]]),
                "verdicts": pinned([value / UNITS for value in r], Cell.of(line).policy),
            }
            for line in sequences
        ]  # fmt: skip
        kept = _on_file(file, {one["percent"] for one in taken})
        document = {
            "kernel": subject, "timer": timer, "gpu": models[sequences[0]["process"]],
            "duration_ns": round(durations[subject]), "unit": 1 / UNITS,
            "sequences": sorted([*taken, *kept], key=lambda one: (one["percent"], one["seed"])),
        }  # fmt: skip
        text = json.dumps(document, indent=1)
        text = re.sub(r"\[([^\[\]{}]*)\]", lambda found: "[" + re.sub(r"\s*\n\s*", "", found[1]) + "]", text)
        file.write_text(text + "\n", encoding="utf-8")


def _on_file(file: Path, taken: Set[float]) -> list[dict[str, Any]]:
    """Sequences that ``file`` has of other slowdowns than those ``taken``."""
    if not file.exists():
        return []
    sequences: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["sequences"]
    return [one for one in sequences if one["percent"] not in taken]
