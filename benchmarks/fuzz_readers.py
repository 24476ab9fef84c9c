"""Search, guided by coverage, for baselines and cubins that crash their readers, or take them long or much memory.

    python benchmarks/fuzz_readers.py [--baselines 100000] [--cubins 20000] [--seed 1] [--crashes DIR] [--output PAGE]

Needs atheris (``pip install --group fuzz``).  Starts from the small files in ``benchmarks/fuzz/corpus``; what it finds
on its way is thrown away, but for inputs that crash, which are kept in DIR.  PAGE is that of ``hostile_files.py``; its
second section becomes what was found.  Exit status 1 if there was a crash, an input that took more than a second, or
more memory than 200 MB.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent
CORPUS = HERE / "fuzz" / "corpus"
HEADING = "## Guided by coverage"
MOST_S, MOST_MB, MOST_BYTES = 1, 200, 1 << 16
"""Bounds of one input: seconds, memory of the whole process, and its size."""


class Fuzzed(NamedTuple):
    """What fuzzing one reader came to."""

    name: str
    executions: int
    edges: int
    """Branches of the package's byte code that some input took."""
    slowest_s: float
    """Of processor time, by one input."""
    peak_mb: int
    """Of the whole process, the interpreter included."""
    crashes: tuple[str, ...]
    """The last lines that a process said which crashed, hung, or took too much memory."""


def fuzz(name: str, count: int, seed: int, crashes: Path) -> Fuzzed:
    """Feed a reader ``count`` inputs, in a process that the first crash ends."""
    with tempfile.TemporaryDirectory(prefix="gpuperf-fuzz-") as folder:
        found, slowest = Path(folder, "found"), Path(folder, "slowest")
        found.mkdir()
        command = [
            sys.executable, "-m", "fuzz.process", name, str(slowest), f"-runs={count}", f"-seed={seed}",
            f"-timeout={MOST_S}", f"-rss_limit_mb={MOST_MB}", f"-max_len={MOST_BYTES}", "-print_final_stats=1",
            f"-artifact_prefix={crashes.resolve()}/{name}-", str(found), str(CORPUS / name),
        ]  # fmt: skip
        environ = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}", "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            command,
            cwd=HERE,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        took = slowest.read_text(encoding="ascii") if slowest.exists() else "0"
        return told(name, done.returncode, done.stdout, float(took))


def told(name: str, status: int, said: str, slowest_s: float) -> Fuzzed:
    """What libFuzzer said of its run."""
    executed = re.findall(r"^stat::number_of_executed_units:\s+(\d+)", said, re.MULTILINE)
    edges = re.findall(r"\bcov: (\d+)", said)
    peak = re.findall(r"^stat::peak_rss_mb:\s+(\d+)", said, re.MULTILINE)
    crash = tuple(said.splitlines()[-40:]) if status or not executed else ()
    return Fuzzed(
        name, int(executed[-1]) if executed else 0, int(edges[-1]) if edges else 0, slowest_s,
        int(peak[-1]) if peak else 0, crash,
    )  # fmt: skip


def section(command: str, every: list[Fuzzed]) -> str:
    """What was found, as Markdown."""
    rows = [
        f"| {one.name} | {one.executions:,} | {one.edges:,} | {int(bool(one.crashes))} | {one.slowest_s:.3f} | "
        f"{one.peak_mb} |"
        for one in every
    ]
    return "\n".join([
        HEADING, "",
        f"By `{command}`, with atheris and libFuzzer, from the {sum(1 for _ in CORPUS.glob('*/*'))} files in",
        "`benchmarks/fuzz/corpus`. An input that reaches new code is kept and changed again. A *crash* is any error",
        f"that is not documented, an input that takes more than {MOST_S} s, or a process of more than {MOST_MB} MB,",
        f"interpreter included. Inputs have {MOST_BYTES >> 10} KiB at most; the files above are larger.", "",
        "| reader of | executions | edges covered | crashes | slowest, s | peak, MB |", "|---|---|---|---|---|---|",
        *rows, "",
    ])  # fmt: skip


def with_section(page: str, text: str) -> str:
    """The page with this section in the place of the older one."""
    return page.partition(f"\n{HEADING}")[0].rstrip() + "\n\n" + text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baselines", type=int, default=100_000)
    parser.add_argument("--cubins", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--crashes", type=Path, default=Path("fuzz-crashes"))
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    given.crashes.mkdir(parents=True, exist_ok=True)
    counts = {"baselines": given.baselines, "cubins": given.cubins}
    every = [fuzz(name, count, given.seed, given.crashes) for name, count in counts.items() if count]
    text = section(
        f"python benchmarks/fuzz_readers.py --baselines {given.baselines} --cubins {given.cubins} --seed {given.seed}",
        every,
    )
    print(text)
    for one in every:
        print("\n".join(one.crashes), file=sys.stderr)
    if given.output:
        page = given.output.read_text(encoding="utf-8") if given.output.exists() else "# Hostile baselines and cubins\n"
        given.output.write_text(with_section(page, text), encoding="utf-8")
    return int(any(one.crashes or one.slowest_s > MOST_S or one.peak_mb > MOST_MB for one in every))


if __name__ == "__main__":
    sys.exit(main())
