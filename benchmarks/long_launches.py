"""Long launches on a real GPU: their times one by one, and real verdicts on known slowdowns.

    python benchmarks/long_launches.py record --output launches.json --seconds 120
    python benchmarks/long_launches.py verdicts --output verdicts.json --seconds 600

    python benchmarks/long_launches.py table --inputs verdicts.json ... --output table.md

``record`` takes single-launch times of loop and copy kernels of 1 to 1,000 ms by the plugin's own timer, the flush
before each, and writes ``{"loop 25 ms": [ns, ...]}``: what ``benchmarks/guarantees.py long --launches`` replays.
``verdicts`` pairs each with a version of itself that is slower by a known share, in this process and under the policy
of the second, and writes a line per cell: verdicts, blocks, launches and seconds.  Both end with their time.  ``table``
counts the verdicts of several such files, cell by cell, places in the run together.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from campaign.child import opened
from pytest_gpuperf.judge.error_budget import ALPHA_FASTER, Spending
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.judge.rank_eprocess import LAUNCHES
from pytest_gpuperf.timing.paired_run import Pairing, pair

from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.device.launch import Kernel, Launch
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.timing.rounds import Workload, warm_up

DEVICE = "pytest_gpuperf.device.discovery:open_device"
LENGTHS_MS = (1, 10, 25, 60, 250, 1000)
EFFECTS = {"A/A": 1.0, "+1 %": 1.01, "+2 %": 1.02, "x1.5": 1.5, "x3": 3.0, "x10": 10.0}
RARE_MS = 250
"""From this length on a cell is tried twice at each place, A/A five times."""
PAIRS = 30
"""No verdict is begun for which as many pairs of launches, in both processes together, would take too long."""
FLOATS = 1 << 29
"""Of each array: 2 GiB, so that next to nothing of what a pass has left in the L2 is there for the next one."""
SHORTEST_MS = 0.9
"""A launch that is to last a millisecond may be found a little shorter."""

MOST_TURNS = 2**31 - 1

SOURCE = """
extern "C" __global__ void loop(float* out, const float* in, int turns)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i], y = x;
#pragma unroll 1
    for (long long k = 0; k < (long long)turns * FACTOR / 1000; ++k) { x = x * 1.0001f + y; y = y * 0.9999f + x; }
    out[i] = x + y;
}
extern "C" __global__ void copy(float* out, const float* in, int turns)
{
    int threads = gridDim.x * blockDim.x;
#pragma unroll 1
    for (long long k = 0; k < (long long)turns * FACTOR / 1000; ++k) {
        int at = (int)((k * threads + blockIdx.x * blockDim.x + threadIdx.x) & (FLOATS - 1));
        out[at] = in[at] + 1.0f;
    }
}
"""


class Bench(NamedTuple):
    """The device and its timer."""

    device: Any
    timer: Any

    def launch(self, family: str, milliseconds: float) -> Launch:
        """A launch of about this length, by trial."""
        arrays = self.device.arrays.zeros(FLOATS), self.device.arrays.random(FLOATS, seed=1)
        arch = self.device.facts.arch
        kernel = Kernel({arch: compiled(family, arch)}, device=self.device, native=arch, ptx=_no_ptx)
        grid = 4 * self.device.facts.sm_count if family == "loop" else 8 * self.device.facts.sm_count
        turns = 1000
        for _ in range(4):
            launch = kernel.launch(grid=grid, block=256, args=(*arrays, turns))
            turns = min(max(1, round(turns * milliseconds * 1e6 / self.once_ns(launch))), MOST_TURNS)
        return kernel.launch(grid=grid, block=256, args=(*arrays, turns))

    def once_ns(self, launch: Launch) -> float:
        return float(self.timer.measure([Slot(launch, 1, dropped=1)], "cold")[0][0])


@functools.cache
def compiled(family: str, arch: str, factor: float = 1.0) -> KernelBinary:
    """``family``'s kernel with so many times the turns."""
    options = (f"-DFACTOR={round(1000 * factor)}", f"-DFLOATS={FLOATS}")
    return compile_kernel(KernelSource(text=SOURCE, name=family, options=options), arch)


class Chosen(NamedTuple):
    """Kernels to try, and how often."""

    families: Sequence[str]
    lengths: Sequence[int]
    passes: int
    effects: Sequence[str] = tuple(EFFECTS)
    places: Sequence[int] = (1, 20, 200)
    """Numbers of the workload in its run, for verdicts."""


def _no_ptx(arch: str) -> str:
    raise NotImplementedError(f"these kernels are machine code only, there is no PTX for {arch}")


def record(bench: Bench, seconds: float, chosen: Chosen) -> dict[str, list[float]]:
    """Times of single launches in a row, a share of the time for each kernel."""
    kernels = [(family, length) for family in chosen.families for length in chosen.lengths]
    found: dict[str, list[float]] = {}
    for number, (family, length) in enumerate(kernels):
        launch = bench.launch(family, length)
        warm_up(bench.timer, Workload(launch), bound_s=0.25)
        ends = time.perf_counter() + seconds / (len(kernels) - number)
        began, times = time.perf_counter(), []
        while time.perf_counter() < ends and len(times) < 5000:
            slots = [Slot(launch, 1, dropped=0) for _ in range(2 * LAUNCHES)]
            times += [one[0] for one in bench.timer.measure(slots, "cold")]
        found[f"{family} {length} ms"] = times
        seconds -= time.perf_counter() - began
    return found


def verdicts(bench: Bench, seconds: float, chosen: Chosen) -> list[dict[str, Any]]:
    """Cells in an order of their own, again and again until the time is over."""
    began, lines = time.perf_counter(), []
    launches: dict[tuple[str, float], Launch] = {}
    for family, length, words, place in schedule(chosen):
        left_s = seconds - (time.perf_counter() - began)
        if left_s < 0:
            break
        if length * (1 + EFFECTS[words]) * PAIRS / 1e3 > left_s:
            continue
        if (family, length) not in launches:
            launches[family, length] = bench.launch(family, length)
        policy = Policy(alpha=Spending().share(place), alpha_faster=Spending(ALPHA_FASTER).share(place))
        candidate = compiled(family, bench.device.facts.arch, EFFECTS[words])
        found = verdict(bench, launches[family, length], candidate, policy, length * 1e6 * EFFECTS[words])
        lines.append({"kernel": f"{family} {length} ms", "effect": words, "place": place, **found})
    return lines


def schedule(chosen: Chosen) -> Iterator[tuple[str, int, str, int]]:
    """Kernel, length, effect and place: each cell in each pass, the longest in few."""
    order = random.Random(1)
    for number in range(min(50, chosen.passes)):
        cells = [(family, length, words, place) for family in chosen.families for length in chosen.lengths
                 for words in chosen.effects for place in chosen.places
                 if number < times(length, words)]  # fmt: skip
        order.shuffle(cells)
        yield from cells


def times(length: int, words: str) -> int:
    """How often a cell is tried at each place, at most."""
    if length < RARE_MS:
        return 50 if words == "A/A" else 20
    return 5 if words == "A/A" else 2


def verdict(
    bench: Bench, launch: Launch, candidate: KernelBinary, policy: Policy, expected_ns: float
) -> dict[str, Any]:
    """Of the two processes' policies one after the other, as a line of results."""
    found = [_paired(bench, launch, candidate, policy, expected_ns)]
    if found[0].paired.decision.value == "slower":
        found.append(_paired(bench, launch, candidate, policy.confirming(), expected_ns))
    return {
        "decisions": [one.paired.decision.value for one in found], "blocks": [len(one.blocks) for one in found],
        "launches": sum(len(block.times_ns) for one in found for block in one.blocks),
        "ratio": found[0].paired.ratio, "interval": found[0].paired.interval,
        "seconds": round(sum(one.seconds for one in found), 3), "long": found[0].long,
    }  # fmt: skip


def table(lines: Sequence[dict[str, Any]]) -> str:
    """Verdicts by kernel and effect: how many are SLOWER in both processes, how many pass, and at what price."""
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in lines:
        cells.setdefault((one["kernel"], one["effect"]), []).append(one)
    words = list(EFFECTS)
    order = sorted(cells, key=lambda cell: (cell[0].split()[0], int(cell[0].split()[1]), words.index(cell[1])))
    rows = ["| kernel | effect | verdicts | SLOWER in two processes | passed | measured | launches | seconds |",
            "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for kernel, effect in order:
        found = cells[kernel, effect]
        slower = sum(one["decisions"] == ["slower", "slower"] for one in found)
        passed = sum(one["decisions"][-1] in ("same", "not slower", "faster") for one in found)
        ratio, launches, seconds = (
            statistics.median(one[name] for one in found) for name in ("ratio", "launches", "seconds")
        )
        most = max(one["launches"] for one in found)
        rows.append(f"| {kernel} | {effect} | {len(found)} | {slower} | {passed} | x{ratio:.4f} | "
                    f"{launches:.0f}, at most {most} | {seconds:.2g} |")  # fmt: skip
    return "\n".join([*rows, ""])


def _paired(bench: Bench, launch: Launch, candidate: KernelBinary, policy: Policy, expected_ns: float) -> Pairing:
    return pair(
        bench.device, bench.timer, launch, launch.binary, policy, seed=random.randrange(2**32), candidate=candidate,
        duration_ns=max(expected_ns, SHORTEST_MS * 1e6), baseline_ns=expected_ns, budget_s=5.0,
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("command", choices=("record", "verdicts", "table"))
    made.add_argument("--output", type=Path, required=True)
    made.add_argument("--seconds", type=float, default=300.0, help="of the device")
    made.add_argument("--timer", default=None, help="default: the best that works")
    made.add_argument("--device", default=DEVICE, help=argparse.SUPPRESS)
    made.add_argument("--families", nargs="+", default=["loop", "copy"], choices=("loop", "copy"))
    made.add_argument("--lengths", nargs="+", type=int, default=LENGTHS_MS, choices=LENGTHS_MS, help="milliseconds")
    made.add_argument("--passes", type=int, default=50, help="over all cells")
    made.add_argument("--effects", nargs="+", default=list(EFFECTS), choices=list(EFFECTS), help="for verdicts")
    made.add_argument("--places", nargs="+", type=int, default=[1, 20, 200], help="in the run, for verdicts")
    made.add_argument("--inputs", nargs="+", type=Path, default=[], help="what verdicts has written, for the table")
    options = made.parse_args(arguments)
    if options.command == "table":
        lines = [one for file in options.inputs for one in json.loads(file.read_text(encoding="utf-8"))]
        options.output.write_text(table(lines), encoding="utf-8")
        return 0
    chosen = Chosen(options.families, options.lengths, options.passes, options.effects, options.places)
    device = opened(options.device)
    bench = Bench(device, device.timer(options.timer))
    with device.lock(), device.current():
        found = (record if options.command == "record" else verdicts)(bench, options.seconds, chosen)
    options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
