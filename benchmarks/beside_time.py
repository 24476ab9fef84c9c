"""Figures beside the time: losses found, false verdicts, and how a ratio scatters from process to process.

    python benchmarks/beside_time.py run host --output DIR/host.json              # no GPU: NumPy in the launches' place
    python benchmarks/beside_time.py run host --gpu --jobs 8 --output DIR/host_gpu.json
    python benchmarks/beside_time.py run memory --gpu --output DIR/memory.json
    python benchmarks/beside_time.py merge DIR/*.json --output docs/results/beside_time.md

Every measurement is a fresh process, and so is every confirmation.  A record has the ratios of five processes, and is
made anew for every group of trials.  Ends with status 1 if fewer than 95 of 100 losses are found or a verdict is false.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pytest_gpuperf.judge.beside_verdict import decided, judge_exact, judge_host_time, least_time_ns, policy_of
from pytest_gpuperf.judge.error_budget import ALPHA, ALPHA_FASTER, Spending
from pytest_gpuperf.judge.policy import CONFIRMATION_ALPHA, Policy
from pytest_gpuperf.model.beside_figures import HostTime
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.timing.host_blocks import (
    HostBlock,
    blocks_beside,
    cpu_model,
    host_cost,
    interpreter_cost,
)
from pytest_gpuperf.timing.pending_confirmations import BesidePending
from pytest_gpuperf.workload.confirm_beside import settled
from pytest_gpuperf.workload.measure_beside import BLOCKS, taken_until_decided

KEY = Key(module="benchmark.py", test="test_beside", workload="work")
LOSSES, EQUAL = 100, 300
PROCESSES = 5
"""Of a record."""
GROUP = 20
"""Trials against one record."""
SHARES = 10
"""A trial has the share of the error rate of one of a run's first so many workloads."""
BUDGET_S = 5.0
CALLS = 10
"""Of a host workload; one more is +10 %."""

# --- in a fresh process --------------------------------------------------------------------------


def measured(task: dict[str, Any]) -> dict[str, Any]:
    """What a process finds: against a record until that decides, else as many blocks as go on record."""
    blocks = _blocks(task)
    if task["record"] is None:
        taken = [next(blocks) for _ in range(BLOCKS)]
        return {"r": [one.r for one in taken], "time_ns": statistics.median(one.time_ns for one in taken)}
    taken, paired = taken_until_decided(blocks, _record(task), Policy(**task["policy"]), BUDGET_S, time.perf_counter)
    return {
        "r": [one.r for one in taken],
        "time_ns": statistics.median(one.time_ns for one in taken),
        "decision": paired.decision.name,
    }


def _blocks(task: dict[str, Any]) -> Iterator[HostBlock]:
    seed, size = task["seed"], task["size"]
    run, wait = _gpu_launches(size) if task["gpu"] else _numpy_calls(size)
    return blocks_beside(host_cost(run, None, wait, 64), interpreter_cost, seed)


def _numpy_calls(size: int) -> tuple[Callable[[], None], Callable[[], None]]:
    import numpy as np

    x = np.zeros(64, dtype="float32")

    def run() -> None:
        for _ in range(size):
            np.add(x, 1, out=x)

    return run, lambda: None


def _gpu_launches(size: int) -> tuple[Callable[[], None], Callable[[], None]]:
    import cupy

    x = cupy.zeros(64, dtype="float32")

    def run() -> None:
        for _ in range(size):
            cupy.add(x, 1, out=x)

    return run, cupy.cuda.runtime.deviceSynchronize


def memory_verdicts() -> dict[str, Any]:
    """Of callables with temporary arrays of random sizes, equal and 1 % larger; one process does them all."""
    import cupy

    from pytest_gpuperf.device.discovery import open_device

    device, coin, found = open_device(), random.Random(22), {"loss": Counter[str](), "equal": Counter[str]()}
    for kind, number, more in (("loss", LOSSES, 1.01), ("equal", EQUAL, 1.0)):
        for _ in range(number):
            sizes = [coin.randrange(1 << 18, 1 << 24) for _ in range(coin.randrange(1, 6))]

            def work(factor: float, sizes: Sequence[int] = sizes) -> Any:
                held = [cupy.zeros(int(size * factor), dtype="uint8") for size in sizes]
                return held[0].astype("float32") + held[-1].sum()

            before, after = (device.bytes_of(lambda factor=factor: work(factor)) for factor in (1.0, more))
            found[kind][judge_exact(KEY, "gpu", "memory", before, after, None).verdict.value] += 1
    return {"kind": "memory", "gpu": True, "where": device.facts.name, **{k: dict(v) for k, v in found.items()}}


# --- in the process that starts them -------------------------------------------------------------


def in_process(task: dict[str, Any]) -> dict[str, Any]:
    """What a fresh process finds."""
    run = subprocess.run(
        [sys.executable, __file__, "child"], input=json.dumps(task), capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise RuntimeError(run.stderr[-2000:])
    return dict(json.loads(run.stdout))


def _record(task: dict[str, Any]) -> HostTime:
    return HostTime(**task["record"], cpu=cpu_model(), made_by="benchmark")


def recorded(base: dict[str, Any], coin: random.Random) -> dict[str, Any]:
    """The ratios of a record's processes, and its time."""
    found = [in_process({**base, "record": None, "seed": coin.randrange(1 << 30)}) for _ in range(PROCESSES)]
    ratios = tuple(math.exp(statistics.median(one["r"])) for one in found)
    return {"ratios": ratios, "time_ns": statistics.median(one["time_ns"] for one in found)}


def trial(base: dict[str, Any], record: dict[str, Any], number: int, seed: int) -> dict[str, Any]:
    """The verdict on one run, confirmed where the first process calls it worse or better."""
    began = time.perf_counter()
    alpha = Spending(ALPHA).share(1 + number % SHARES)
    policy = policy_of(base["kind"], None, alpha, alpha * ALPHA_FASTER / ALPHA)
    rates = {name: getattr(policy, name) for name in ("delta", "epsilon", "alpha", "alpha_faster", "blocks_max")}
    task = {**base, "record": record, "seed": seed, "policy": rates}
    first = in_process(task)
    paired = _judged(task, first, policy)
    least = least_time_ns(_record(task), policy)
    judgement = judge_host_time(KEY, "here", base["kind"], paired, first["time_ns"], least)
    found = {"first": judgement.verdict.value, "ratio": paired.ratio, "blocks": paired.blocks}
    if judgement.verdict.value in ("WORSE", "BETTER"):
        rates = {**rates, "alpha": CONFIRMATION_ALPHA, "alpha_faster": CONFIRMATION_ALPHA}
        pending = BesidePending(base["kind"], _record(task), policy, paired, first["time_ns"], judgement, BUDGET_S)
        later, last = list[list[float]](), None
        while last is None:
            later.append(in_process({**task, "seed": seed + 1 + len(later), "policy": rates})["r"])
            last = settled(pending, later, "")
        judgement, found["processes"] = last, 1 + len(later)
    return {**found, "verdict": judgement.verdict.value, "seconds": time.perf_counter() - began}


def _judged(task: dict[str, Any], found: dict[str, Any], policy: Policy) -> Any:
    return decided(found["r"], _record(task), policy, stopped=True)


def run(kind: str, output: Path, *, gpu: bool, jobs: int, losses: int, equal: int) -> dict[str, Any]:
    """All trials of one kind; ``output`` has what there is after each group."""
    if kind == "memory":
        result = memory_verdicts()
        output.write_text(json.dumps(result), encoding="utf-8")
        return result
    base: dict[str, Any] = {"kind": kind, "gpu": gpu, "size": CALLS}
    slower = CALLS + 1
    coin, found = random.Random(os.getpid()), {"loss": [], "equal": []}
    trials = [(what, number) for what, count in (("loss", losses), ("equal", equal)) for number in range(count)]
    coin.shuffle(trials)
    for begin in range(0, len(trials), GROUP):
        record = recorded(base, coin)
        with ThreadPoolExecutor(jobs) as pool:
            waiting = [
                (what, pool.submit(trial, {**base, "size": slower if what == "loss" else base["size"]}, record,
                                   number, coin.randrange(1 << 30)))
                for what, number in trials[begin : begin + GROUP]
            ]  # fmt: skip
            for what, one in waiting:
                found[what].append(one.result())
        print(begin + GROUP, {what: dict(Counter(one["verdict"] for one in those)) for what, those in found.items()},
              file=sys.stderr, flush=True)  # fmt: skip
        result = {"kind": kind, "gpu": gpu, "where": cpu_model(), "cores": os.cpu_count(), "jobs": jobs, **found}
        output.write_text(json.dumps(result), encoding="utf-8")
    return result


# --- the page ------------------------------------------------------------------------------------

HEAD = """\
# Figures beside the time

What `measure=` finds, and what it says of equal work. Made by

    python benchmarks/beside_time.py run KIND [--gpu] --output FILE      # for each kind
    python benchmarks/beside_time.py merge FILE... --output docs/results/beside_time.md

Every measurement is a process of its own, and so is the confirmation of what got worse or better. A record has the
ratios of five processes, and is made anew for every {group} runs. *Ratio* is that to the record: its median, and how
it scatters from process to process (standard deviation). *Host* without a GPU is ten calls of NumPy, on an H200 ten
launches by CuPy, and one more is the loss. *First* are those that the first process called WORSE.

| figure | on | work | runs | WORSE | first | BETTER | undecided | ratio | scatter | blocks | seconds |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""
FOOT = """
A verdict on equal work is false if it is WORSE or BETTER. Undecided are INCONCLUSIVE, among them what a second process
did not confirm.
"""
LOSS = {"memory": "+1 %", "host": "+10 %"}


def page(files: Sequence[dict[str, Any]]) -> str:
    """All kinds as one table."""
    lines = [line for found in files for line in _lines(found)]
    return HEAD.format(group=GROUP) + "\n".join(lines) + "\n" + FOOT


def pooled(files: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Files of one kind on one machine as one."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for one in files:
        known = found.setdefault((one["kind"], one["gpu"], one["where"]), one)
        if known is not one and isinstance(one["loss"], list):
            known.update(loss=[*known["loss"], *one["loss"]], equal=[*known["equal"], *one["equal"]])
    return list(found.values())


def _lines(found: dict[str, Any]) -> Iterator[str]:
    where = found["where"] + ("" if found["kind"] == "memory" or not found["gpu"] else ", H200")
    for what, work in (("loss", LOSS[found["kind"]]), ("equal", "equal")):
        those = found[what]
        if not those:
            continue
        if isinstance(those, dict):
            cells = [sum(those.values()), those.get("WORSE", 0), "-", those.get("BETTER", 0), 0, "-", "-", "-", "-"]
        else:
            verdicts = Counter(one["verdict"] for one in those)
            ratios = [one["ratio"] for one in those]
            cells = [
                len(those), verdicts["WORSE"], sum(one["first"] == "WORSE" for one in those), verdicts["BETTER"],
                verdicts["INCONCLUSIVE"], f"x{statistics.median(ratios):.3f}", f"{statistics.stdev(ratios):.1%}",
                statistics.median(one["blocks"] for one in those),
                f"{statistics.median(one['seconds'] for one in those):.1f}",
            ]  # fmt: skip
        yield f"| {found['kind']} | {where} | {work} | {' | '.join(map(str, cells))} |"


def promises_kept(found: dict[str, Any]) -> bool:
    """Whether 95 of 100 losses are WORSE, and no equal work is anything that a team would act on."""
    loss, equal = (
        Counter(those) if isinstance(those, dict) else Counter(one["verdict"] for one in those)
        for those in (found["loss"], found["equal"])
    )
    return loss["WORSE"] >= 0.95 * sum(loss.values()) and not equal["WORSE"] + equal["SUSPECT"] + equal["BETTER"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("child")
    runs = commands.add_parser("run")
    runs.add_argument("kind", choices=tuple(LOSS))
    runs.add_argument("--gpu", action="store_true")
    runs.add_argument("--jobs", type=int, default=1, help="processes at once")
    runs.add_argument("--losses", type=int, default=LOSSES)
    runs.add_argument("--equal", type=int, default=EQUAL)
    runs.add_argument("--output", type=Path, required=True)
    merge = commands.add_parser("merge")
    merge.add_argument("files", type=Path, nargs="+")
    merge.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    if given.command == "child":
        print(json.dumps(measured(json.load(sys.stdin))))
        return 0
    if given.command == "run":
        given.output.parent.mkdir(parents=True, exist_ok=True)
        found = run(given.kind, given.output, gpu=given.gpu, jobs=given.jobs, losses=given.losses, equal=given.equal)
        print(*_lines(found), sep="\n")
        return 0 if promises_kept(found) else 1
    files = pooled([json.loads(path.read_text(encoding="utf-8")) for path in given.files])
    given.output.write_text(page(files), encoding="utf-8")
    return 0 if all(map(promises_kept, files)) else 1


if __name__ == "__main__":
    sys.exit(main())
