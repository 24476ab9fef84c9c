"""Many fresh processes: one chain of them per GPU, each of which confirms what the one before it found."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from campaign.child import Task

SCRIPT = Path(__file__).parents[1] / "paired_campaign.py"
LEAST_CHILD_S = 8.0
"""A process that has less time left is not started."""
GRACE_S = 120.0
"""Beyond its own budget, for starting up, compiling and confirming."""


def visible_gpus() -> list[str]:
    """What ``CUDA_VISIBLE_DEVICES`` can be set to, one GPU each."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed:
        return [name.strip() for name in listed.split(",") if name.strip()]
    import pynvml

    pynvml.nvmlInit()
    return [str(index) for index in range(pynvml.nvmlDeviceGetCount())]


def conduct(task: Task, gpus: Sequence[str], processes: int, seconds: float) -> int:
    """Run ``processes`` processes per GPU within ``seconds``; returns how many chains failed."""
    deadline = time.monotonic() + seconds
    # Its number in all parts and calls, so that each process has surroundings of its own.
    taken = [int(path.stem.split("-")[2]) for path in task.folder.glob("*.jsonl")]
    first = max(taken, default=-1) + 1
    last = first + processes * len(gpus)
    task = dataclasses.replace(task, process=f"{int(time.time()) & 0xFFFFFF:06x}")  # tells calls apart
    with ThreadPoolExecutor(max_workers=len(gpus)) as pool:
        chains = [
            pool.submit(_chain, task, gpu, first, range(first + place, last, len(gpus)), deadline)
            for place, gpu in enumerate(gpus)
        ]
        return sum(chain.result() for chain in chains)


def _chain(task: Task, gpu: str, first: int, numbers: range, deadline: float) -> int:
    """One GPU's processes one after another, and at the end one that only confirms; 1 if one failed."""
    predecessor = ""
    for left, number in zip(range(len(numbers), 0, -1), numbers, strict=True):
        remaining = deadline - time.monotonic()
        if remaining < LEAST_CHILD_S:
            break
        name = f"{task.part}-{task.timer}-{number}-{task.process}"
        index = number - first if task.part == "blocks" else number
        own = dataclasses.replace(
            task, process=name, index=index, seconds=remaining / left, predecessor=predecessor
        )  # fmt: skip
        if start_child(own, gpu):
            return 1  # the next would fail alike, and time on a GPU is dear
        predecessor = name
    if predecessor and task.part != "blocks":
        last = dataclasses.replace(
            task, process=f"{predecessor}-confirm", index=numbers[-1] + 1, predecessor=predecessor, only_confirm=True
        )
        return start_child(last, gpu)
    return 0


def start_child(task: Task, gpu: str) -> int:
    """Run one process to its end; 1 if it failed."""
    fields = {**dataclasses.asdict(task), "folder": str(task.folder)}
    command = [sys.executable, str(SCRIPT), "child", json.dumps(fields)]
    environ = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu}
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=task.seconds + GRACE_S, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"{task.process}: ended after {task.seconds + GRACE_S:.0f} s", file=sys.stderr, flush=True)
        return 1
    took = time.monotonic() - began
    lines = len(task.results.read_text(encoding="utf-8").splitlines()) if task.results.exists() else 0
    print(f"{task.process} on GPU {gpu}: {max(lines - 2, 0)} verdicts in {took:.1f} s", file=sys.stderr, flush=True)
    if done.returncode:
        print(f"{task.process} failed:\n{done.stderr[-3000:]}", file=sys.stderr, flush=True)
    return int(done.returncode != 0)
