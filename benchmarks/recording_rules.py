"""Are good recordings refused, and bad ones taken?  Recordings on an idle GPU, and beside a process that keeps it busy.

    python benchmarks/recording_rules.py idle --output idle.json [--seconds 90]
    python benchmarks/recording_rules.py busy --output busy.json [--seconds 90]
    python benchmarks/recording_rules.py table idle.json busy.json [--output docs/results/recordings.md]

Loops and copies of 2 to 200 us are recorded as an update records them: two rounds of thirty samples, taken again in the
same process while they are disturbed, by fresh processes that each take every kernel once.  ``busy`` starts a process
beside them that copies memory, computes, or launches short kernels with pauses between them.  Written are all samples
with what was said of them, so that rules can be tried on them later; ``table`` counts what the rules of this state of
the project refuse.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from campaign.child import gpu_label, opened
from pytest_gpuperf.selftest.kernels import COPY, FAMILIES, LOOP, Probe, compile_probes, launch_of
from pytest_gpuperf.selftest.known_slowdowns import Subject, Wanted, make_subjects
from pytest_gpuperf.timing.health import Batch, disturbances
from pytest_gpuperf.timing.sample_stats import alternates, centre, midmean, outlier_share
from pytest_gpuperf.workload.record_time import RETAKES

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.device.interface import Device, Slot, Timer
from pytest_gpuperf.device.timers.resolution import step_of
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.model.timed_round import DeviceState, Round
from pytest_gpuperf.timing.rounds import Rounds, Workload, summarise, take_rounds

DEVICE = "pytest_gpuperf.device.discovery:open_device"
LOOPS_US = (2.0, 2.5, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
COPIES_US = (4.0, 10.0, 30.0, 60.0, 117.0, 200.0)
COPY_START_US = 1.3
COPY_BYTES_PER_US = 4e6
"""Of an H200: what a copy takes before it moves anything, and what it moves then, bytes read plus bytes written."""


def copied(microseconds: float) -> int:
    """Elements of 16 bytes whose copy takes about so long; by a line through larger copies it would be far off."""
    return int((microseconds - COPY_START_US) * COPY_BYTES_PER_US / 32)


WANTED = (
    *(Wanted(f"loop {us:g} us", LOOP, duration_ns=us * 1000, slower=False) for us in LOOPS_US),
    *(Wanted(f"copy {us:g} us", COPY, count=copied(us), slower=False) for us in COPIES_US),
)
ROUNDS = 2
BUDGET_S = 5.0
NEIGHBOURS = ("copy", "compute", "short")
NEIGHBOUR_KERNELS = {"copy": (COPY, 1 << 22), "compute": (LOOP, 250_000), "short": (LOOP, 5000)}
"""Family and count of what a neighbour launches: a copy of 64 MB, and loops of about 1 ms and 20 us on an H200."""
QUEUED = 16
"""Launches that a neighbour has in the queue before it waits for them."""
PAUSE_S = 0.0005
START_S = 60.0
"""Beyond its own time, for a process to start up and to compile."""


@dataclasses.dataclass(frozen=True)
class Task:
    """What a recording process is asked to do."""

    subjects: str
    """File of the kernels."""
    output: str
    index: int
    neighbour: str
    seconds: float
    timer: str | None
    device: str


class WatchedTimer:
    """A timer that notes of each measurement what the host's clock and the records' own times say of pauses in it."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self.name, self.tick_ns, self.overhead_ns = timer.name, timer.tick_ns, timer.overhead_ns
        self.noted: list[dict[str, Any]] = []

    @property
    def kernel_breakdown(self) -> Sequence[Mapping[str, float]]:
        return self._timer.kernel_breakdown

    @property
    def pauses_ns(self) -> Sequence[float]:
        return self._timer.pauses_ns

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        began = time.perf_counter()
        times = self._timer.measure(slots, cache)
        self.noted.append({"host_ms": round((time.perf_counter() - began) * 1e3, 3), **self._timeline()})
        return times

    def _timeline(self) -> dict[str, Any]:
        """Of the work that CUPTI saw: its span, the sum of its durations, and the longest gaps; microseconds."""
        seen = getattr(getattr(self._timer, "source", None), "activities", ())
        spans = sorted((one.start_ns, one.end_ns) for one in seen)
        if len(spans) < 2:
            return {}
        gaps = sorted((later[0] - earlier[1]) / 1e3 for earlier, later in itertools.pairwise(spans))
        return {
            "span_us": (spans[-1][1] - spans[0][0]) / 1e3,
            "busy_us": sum(end - start for start, end in spans) / 1e3,
            "longest_us": max(end - start for start, end in spans) / 1e3,
            "gap_median_us": gaps[len(gaps) // 2], "gap_third_us": gaps[-3:][0], "gap_most_us": gaps[-1],
            "pauses_ns": list(self._timer.pauses_ns),
        }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if no recording could be taken, or a table's promise is broken."""
    options = parser().parse_args(arguments)
    if options.command == "child":
        record(Task(**json.loads(options.task)))
        return 0
    if options.command == "load":
        keep_busy(options.kind, options.device, options.seconds)
        return 0
    if options.command == "table":
        return table(options.files, options.output)
    return conduct(options)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = made.add_subparsers(dest="command", required=True)
    for name, wanted, about in (("idle", 210, "on an idle GPU"), ("busy", 100, "beside a busy process")):
        one = commands.add_parser(name, help=f"take recordings {about}")
        one.add_argument("--output", type=Path, required=True, help="write them to this JSON file")
        one.add_argument("--seconds", type=float, default=90.0, help="no process is started after so long")
        one.add_argument("--recordings", type=int, default=wanted, help="end when there are so many")
        one.add_argument("--timer", default=None)
        one.add_argument("--device", default=DEVICE, help=argparse.SUPPRESS)
    child = commands.add_parser("child", help=argparse.SUPPRESS)
    child.add_argument("task")
    load = commands.add_parser("load", help=argparse.SUPPRESS)
    load.add_argument("kind", choices=NEIGHBOURS)
    load.add_argument("--device", default=DEVICE)
    load.add_argument("--seconds", type=float, default=600.0)
    tabled = commands.add_parser("table", help="count what is refused")
    tabled.add_argument("files", type=Path, nargs="+")
    tabled.add_argument("--output", type=Path, help="write the page to this markdown file")
    return made


# --- many processes ------------------------------------------------------------------------------


def conduct(options: argparse.Namespace) -> int:
    """Fresh processes one after another until there are enough recordings or the time is over."""
    began = time.monotonic()
    own = options.output.with_suffix("")
    own.mkdir(parents=True, exist_ok=True)
    subjects = own / "kernels.json"
    calibrate(subjects, options.device, options.timer)
    neighbours = NEIGHBOURS if options.command == "busy" else ("",)
    deadline = began + options.seconds
    documents: list[dict[str, Any]] = []
    for place, neighbour in enumerate(neighbours):
        wanted = count_of(documents) + -(-options.recordings // len(neighbours))
        ends = deadline - (deadline - time.monotonic()) * (1 - 1 / (len(neighbours) - place))
        with beside(neighbour, options.device, options.seconds + START_S):
            while count_of(documents) < wanted and time.monotonic() < ends:
                documents.append(start_child(options, subjects, len(documents), neighbour, ends - time.monotonic()))
    options.output.write_text(json.dumps(documents), encoding="utf-8")
    taken = time.monotonic() - began
    print(f"{count_of(documents)} recordings in {taken:.0f} s, by {len(documents)} processes", file=sys.stderr)
    return int(not documents)


def calibrate(file: Path, device_name: str, timer_name: str | None) -> None:
    """Find out which counts take how long, once for all processes; in one of its own would be no fresher."""
    device = opened(device_name)
    timer = device.timer(timer_name)
    with device.lock():
        made = make_subjects(device, timer, WANTED, (), CompileCache())
    file.write_bytes(msgspec.json.encode(made))
    print(", ".join(f"{one.name}: {one.duration_ns:.0f} ns" for one in made), file=sys.stderr, flush=True)


def start_child(
    options: argparse.Namespace, subjects: Path, index: int, neighbour: str, seconds: float
) -> dict[str, Any]:
    """What one fresh process recorded.  Ends the script if it failed."""
    output = subjects.with_name(f"{index}.json")
    task = Task(str(subjects), str(output), index, neighbour, seconds, options.timer, options.device)
    command = [sys.executable, __file__, "child", json.dumps(dataclasses.asdict(task))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + START_S, check=False)
    if done.returncode:
        raise SystemExit(f"recording process {index} failed, and the next would fail alike:\n{done.stderr[-3000:]}")
    return dict(json.loads(output.read_text(encoding="utf-8")))


@contextlib.contextmanager
def beside(kind: str, device: str, seconds: float) -> Iterator[None]:
    """Inside, a process of its own keeps the GPU busy; none for an empty ``kind``."""
    if not kind:
        yield
        return
    command = [sys.executable, __file__, "load", kind, f"--device={device}", f"--seconds={seconds}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
        try:
            assert load.stdout is not None
            if load.stdout.readline().strip() != "busy":
                raise SystemExit(f"the process that was to keep the GPU busy ({kind}) did not get that far")
            yield
            if load.poll() is not None:
                raise SystemExit(f"the process that was to keep the GPU busy ({kind}) ended before the recordings did")
        finally:
            load.kill()


def count_of(documents: Sequence[Mapping[str, Any]]) -> int:
    return sum(len(one["recordings"]) for one in documents)


# --- a process beside them -----------------------------------------------------------------------


def keep_busy(kind: str, device_name: str, seconds: float) -> None:
    """Launch the kernels of ``kind`` again and again; says ``busy`` once they run."""
    device: Device = opened(device_name)
    family, count = NEIGHBOUR_KERNELS[kind]
    probe = Probe(family, count)
    launch = launch_of(device, compile_probes([probe], device.facts.arch, CompileCache())[probe], family, count)
    ends = time.monotonic() + seconds
    said = False
    while time.monotonic() < ends and os.getppid() != 1:
        for _ in range(1 if kind == "short" else QUEUED):
            launch()
        device.synchronize()
        if not said:
            print("busy", flush=True)
            said = True
        if kind == "short":
            time.sleep(PAUSE_S)


# --- one recording process -----------------------------------------------------------------------


def record(task: Task) -> None:
    """Record every kernel once, in an order of this process's own, and write what was found."""
    began = time.monotonic()
    device = opened(task.device)
    timer = WatchedTimer(device.timer(task.timer))
    subjects = msgspec.json.decode(Path(task.subjects).read_bytes(), type=list[Subject])
    random.Random(task.index).shuffle(subjects)
    binaries = compile_probes([one.baseline() for one in subjects], device.facts.arch, CompileCache())
    found = []
    with device.lock(), device.current():
        for subject in subjects:
            if time.monotonic() - began > task.seconds:
                break
            launch = launch_of(device, binaries[subject.baseline()], FAMILIES[subject.family], subject.capacity)
            found.append({"kernel": subject.name, "takes": takes_of(device, timer, Workload(launch))})
    facts = device.facts
    document = {
        "gpu": gpu_label(facts.uuid), "model": facts.name, "driver": facts.driver, "timer": timer.name,
        "tick_ns": timer.tick_ns, "neighbour": task.neighbour, "process": task.index, "recordings": found,
    }  # fmt: skip
    Path(task.output).write_text(json.dumps(document), encoding="utf-8")


def takes_of(device: Device, timer: WatchedTimer, workload: Workload) -> list[dict[str, Any]]:
    """The recording and, while it is disturbed, those that an update would take in its place."""
    takes: list[dict[str, Any]] = []
    for _ in range(1 + RETAKES):
        timer.noted.clear()
        before = msgspec.to_builtins(device.state())
        taken = take_rounds(device, timer, workload, ROUNDS, budget_s=BUDGET_S)
        takes.append({**take_line(taken, timer), "before": before, "after": msgspec.to_builtins(device.state())})
        if not taken.disturbed:
            break
    return takes


def take_line(taken: Rounds, timer: WatchedTimer) -> dict[str, Any]:
    """One try, as it is written: samples in nanoseconds."""
    figures = ("midmean", "median", "quantiles", "minimum", "maximum", "rho1", "drift", "modes", "sm_clock_mhz")
    rounds: list[Round] = list(taken.rounds)
    return {
        "samples": [[round(time_ns, 2) for time_ns in one] for one in taken.samples],
        "rounds": [{name: getattr(one, name) for name in figures} for one in rounds],
        "step_ns": [step_of(one, timer.tick_ns) for one in taken.samples],
        "disturbed": list(taken.disturbed), "notes": list(taken.notes), "seconds": round(taken.seconds, 4),
        "warm_up": timer.noted[: -len(rounds)], "timeline": timer.noted[-len(rounds) :],
    }  # fmt: skip


# --- what came of them ---------------------------------------------------------------------------


EXPLAINED = """\
Each recording is two rounds of thirty samples, taken again up to three times in the same process while it is
disturbed. *Disturbed* counts first tries: as the rules of that day said, and as today's say of the same samples.
*Refused* is what stays disturbed by today's rules in every try. An update takes that again in a fresh process.

*Gaps* are the third longest between the pieces of GPU work of a round. Processes on one GPU take turns, and a kernel
within its turn takes as long as ever. So times do not tell of a busy neighbour, and gaps do. Where the process id of
the neighbour is not to be seen, as from another container, they are what refuses a recording (CUPTI only)."""


def scatter(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of a table: how far three ways to sum up a round scatter from round to round, of loops on an idle GPU."""
    rounds: dict[str, list[Any]] = defaultdict(list)
    for document in documents:
        for recording in document["recordings"] if not document["neighbour"] else ():
            taken = [np.asarray(one, dtype=np.float64) for take in recording["takes"] for one in take["samples"]]
            rounds[recording["kernel"]] += [(one, step_of(one.tolist(), document["tick_ns"])) for one in taken]
    lines = [
        "Scatter from round to round, all processes together (sd of the log):", "",
        "| kernel | rounds | plain mean | midmean | core mean where coarse |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for kernel, some in sorted(rounds.items()):
        ways = ([one.mean() for one, _ in some], [midmean(one) for one, _ in some], [centre(*one) for one in some])
        sds = " | ".join(f"{np.std(np.log(way)):.3%}" for way in ways)
        lines.append(f"| {kernel} | {len(some)} | {sds} |")
    return lines


def table(files: Sequence[Path], output: Path | None) -> int:
    """Recordings and refusals by kernel and neighbour: as they were taken, and by today's rules."""
    documents = [one for file in files for one in json.loads(file.read_text(encoding="utf-8"))]
    lines, broken = counted(documents)
    named = " ".join(file.name for file in files)
    made = f"Made by `python benchmarks/recording_rules.py table {named}`, on {documents[0]['model']}."
    verdict = broken or ["All promises hold."]
    text = "\n".join(["# Recordings", "", made, "", EXPLAINED, "", *lines, "", *verdict, "", *scatter(documents), ""])
    print(text)
    if output is not None:
        output.write_text(text, encoding="utf-8")
    return int(bool(broken))


def counted(documents: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Lines of a table, and the promises that are broken: none of an idle GPU refused, 95 % of a busy one's."""
    groups: dict[tuple[str, str], list[list[Judged]]] = defaultdict(list)
    for document in documents:
        for recording in document["recordings"]:
            takes = [judged(document, take) for take in recording["takes"]]
            groups[document["neighbour"], recording["kernel"]].append(takes)
    heads = "beside", "kernel", "recordings", "disturbed as taken", "disturbed by today's rules", "refused", "gaps, us"
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for (neighbour, kernel), some in sorted(groups.items()):
        gaps = [gap for takes in some for one in takes for gap in one.gaps_us]
        refused = sum(all(one.today for one in takes) for takes in some)
        totals["busy" if neighbour else "idle"].update(taken=len(some), refused=refused)
        cells = (
            neighbour or "nothing", kernel, len(some), sum(bool(takes[0].as_taken) for takes in some),
            sum(bool(takes[0].today) for takes in some), refused,
            f"{min(gaps):.0f} to {max(gaps):.0f}" if gaps else "-",
        )  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    broken = []
    idle, busy = totals["idle"], totals["busy"]
    if idle["refused"]:
        broken.append(f"BROKEN: {idle['refused']} of {idle['taken']} recordings on an idle GPU are refused")
    if busy["refused"] < 0.95 * busy["taken"]:
        broken.append(f"BROKEN: {busy['refused']} of {busy['taken']} recordings on a busy GPU are refused")
    return lines, broken


class Judged(NamedTuple):
    """One try: what was said of it when it was taken, and what is said of it now."""

    as_taken: Sequence[str]
    today: Sequence[str]
    gaps_us: Sequence[float]
    """The third longest gap between the pieces of GPU work of each round."""


def judged(document: Mapping[str, Any], take: Mapping[str, Any]) -> Judged:
    """By the rules of ``timing.health``, from the samples."""
    before, after = (msgspec.convert(take[when], DeviceState) for when in ("before", "after"))
    samples = [np.asarray(one, dtype=np.float64) for one in take["samples"]]
    said: list[str] = []
    for times, timeline in zip(samples, take["timeline"], strict=True):
        step = step_of(times.tolist(), document["tick_ns"])
        one = summarise(times, session="", process=0, step_ns=step)
        outliers, pauses = outlier_share(times, step), tuple(timeline.get("pauses_ns", ()))
        said += disturbances(
            Batch(one, before, after, step, outliers, pauses),
            alternating=alternates(np.concatenate(samples), step), averages=document["timer"] == "cupti",
        )  # fmt: skip
    return Judged(
        take["disturbed"], said, [line["gap_third_us"] for line in take["timeline"] if "gap_third_us" in line]
    )


if __name__ == "__main__":
    sys.exit(main())
