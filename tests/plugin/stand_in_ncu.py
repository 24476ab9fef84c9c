#!/usr/bin/env python3
"""Behaves as ``ncu`` does, on a simulated GPU: the same options, words, exit statuses, and a report at the end.

It really runs the program that it is given.  The simulated GPU leaves a line for every launch in a range, from
which the report is made: JSON, since nobody but ncu can write an ``.ncu-rep``; ``read_stand_in_report`` reads it.
``STAND_IN_NCU_REFUSED`` makes it fail as the real one does without permission, in its words.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

TAKES_VALUE = {
    "--config-file", "--target-processes", "--replay-mode", "--clock-control", "--cache-control",
    "--nvtx-include", "--metrics", "--log-file", "--export",
}  # fmt: skip
SWITCHES = {"--nvtx", "--force-overwrite"}
VERSION = """NVIDIA (R) Nsight Compute Command Line Profiler
Copyright (c) 2018-2025 NVIDIA Corporation
Version 2025.3.1.0 (build 12345678) (public-release)
"""
KNOWN = re.compile(r"(dram|gpu|l1tex|launch|lts|memory_l1|profiler|sass|sm|smsp)__?\w*(\.\w+)*")
PERMISSION = """
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the \
target device 0. For instructions on enabling permissions and to get more information see \
https://developer.nvidia.com/ERR_NVGPUCTRPERM
"""


def main(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        print(VERSION)
        return 0
    options: dict[str, str] = {}
    while arguments and arguments[0].startswith("-"):
        word = arguments.pop(0)
        if word in TAKES_VALUE:
            options[word] = arguments.pop(0)
        elif word in SWITCHES:
            options[word] = ""
        else:
            print(f"==ERROR== unrecognised option '{word}'. Use --help for further details.")
            return 1
    return Session(options, arguments).run()


class Session:
    def __init__(self, options: dict[str, str], target: list[str]) -> None:
        self.options = options
        self.target = target
        self.refused = "STAND_IN_NCU_REFUSED" in os.environ
        self.log = Path(options["--log-file"])
        self.report = Path(options["--export"])
        self.metrics = options["--metrics"].split(",")

    def say(self, words: str) -> None:
        with self.log.open("a") as log:
            log.write(words if words.endswith("\n") else words + "\n")

    def run(self) -> int:
        note = os.environ.get("STAND_IN_NCU_CALLS")
        if note:
            with Path(note).open("a") as calls:
                calls.write(json.dumps({"options": self.options, "target": self.target}) + "\n")
        folder = Path(os.environ.get("TMPDIR", "/tmp"))
        return self.profile(folder / "trace.jsonl")

    def profile(self, trace: Path) -> int:
        process = subprocess.Popen(self.target, env={**os.environ, "STAND_IN_NCU": str(trace)})
        self.say(f"==PROF== Connected to process {process.pid} ({self.target[0]})")
        unknown = [name for name in self.metrics if not KNOWN.fullmatch(name) or "misspelt" in name]
        if unknown:
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.say(f"==ERROR== Failed to find metric {shown(unknown[0])}")
            return 9
        status = process.wait()
        self.say(f"==PROF== Disconnected from process {process.pid}")
        if status:
            self.say(f"==ERROR== The application returned an error code ({status}).")
        launches = self.launches(trace)
        if self.refused:
            self.say(PERMISSION)
        if self.refused or not launches:
            self.say("==WARNING== No kernels were profiled.\n")
            return status
        for number, launch in enumerate(launches):
            self.say(f'==PROF== Profiling "{launch["kernel"]}" - {number}: 0%....50%....100% - 1 pass')
        self.report.write_text(json.dumps([{**launch, "metrics": self.figures(launch)} for launch in launches]))
        self.say(f"==PROF== Report: {self.report}")
        return status

    def launches(self, trace: Path) -> list[dict[str, object]]:
        if not trace.exists():
            return []
        found = [json.loads(line) for line in trace.read_text().splitlines()]
        wanted = re.compile(self.options["--nvtx-include"].removeprefix("regex:").removesuffix("/"))
        return [launch for launch in found if wanted.fullmatch(launch["range"])]

    def figures(self, launch: dict[str, object]) -> dict[str, float]:
        """Counts grow with the instructions; DRAM traffic is not the same twice.

        Some names that it does not know ncu takes all the same, and gives no value for.
        """
        instructions = float(str(launch["instructions"]))
        names = [name for name in self.metrics if "valueless" not in name]
        figures = {name: float(len(name)) * instructions * self.scale() for name in names}
        for name in figures:
            if name.startswith("dram__bytes"):
                figures[name] *= 1 + 0.0005 * (os.getpid() % 7)
            elif name == "profiler__replayer_passes":
                figures[name] = 1.0
            elif not name.endswith(".sum"):
                figures[name] = 50.0
        return figures

    @staticmethod
    def scale() -> float:
        """Of this call, by turns those of ``STAND_IN_NCU_SCALE``."""
        scales = os.environ.get("STAND_IN_NCU_SCALE", "1").split(",")
        note = os.environ.get("STAND_IN_NCU_CALLS")
        calls = len(Path(note).read_text().splitlines()) if note and len(scales) > 1 else 1
        return float(scales[(calls - 1) % len(scales)])


def shown(name: str) -> str:
    """A name without a suffix is shown as the expression that it was looked up by."""
    return name if "." in name else rf"regex:^{name}(\.(sum|min|max|avg|pct|ratio|max_rate))?$"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
