"""Does the gate keep its promises on a real GPU?  Verdicts of known truth, in minutes.

    python benchmarks/paired_campaign.py kernels --seconds 300 --out DIR
    python benchmarks/paired_campaign.py kernels --only 'loop 10 ms' 'loop 25 ms' --percents 1 --turns 3 --out DIR
    python benchmarks/paired_campaign.py callables --percents 1 --runs 1 --again 1 --out DIR

``kernels`` compares ten kernels of 2.5 us to 1 ms with themselves and with versions that are 1 and 2 % slower, as the
gate does in a run of ten tests; equal code lies behind another function in its module.  A second process compares again
what is SLOWER.  ``callables`` makes a git repository of ``campaign/suite``, records baselines, and runs
``pytest --gpuperf`` on edits that CUDA events find 1 and 2 % slower.  Each leaves a JSON file and a page in ``--out``,
``kernels`` also blocks for ``decision_power.py --blocks DIR/blocks``.  Exit status 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from campaign.kernels import KERNELS, LONG, Bench

from pytest_gpuperf.judge.decision import CONFIRMING_ALPHA, Comparison, share
from pytest_gpuperf.judge.time_verdict import TimeCase, by_blocks
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.limits import TIGHT
from pytest_gpuperf.timing.compare import compare
from pytest_gpuperf.timing.cubin_reference import BaselineLaunch, CubinReference

ROOT = Path(__file__).resolve().parents[1]
SUITE, TESTS = ROOT / "benchmarks" / "campaign" / "suite", "test_callables.py"
DEVICE, BUDGET_S = "pytest_gpuperf.device.discovery:open_device", 5.0
WANTED = {"kernels": {1: 0.99, 2: 0.995}, "callables": {1: 0.9, 2: 0.98}}  # least shares of SLOWER, by percent
COLUMNS = ("workload", "us", "slower by", "verdicts", "SLOWER", "SAME", "FASTER", "other", "ratio", "blocks", "seconds")
"""The last three, and the microseconds, are medians."""
Verdicts = list[dict[str, Any]]


def compared(bench: Bench, plan: dict[str, Any], percent: int, alpha: float, seed: int) -> tuple[Comparison, float]:
    """One comparison as the gate takes it, and its seconds, loading included."""
    baseline = bench.launch(plan["family"], plan["counts"][0], plan["most"])
    candidate = bench.launch(plan["family"], plan["counts"][percent], plan["most"], behind=True)
    began = time.perf_counter()
    reference = CubinReference(bench.device, bench.timer, candidate, BaselineLaunch(baseline.binary))
    ns = plan["duration_ns"]
    found = compare(bench.device, reference, TIGHT, alpha, seed=seed, duration_ns=ns, budget_s=BUDGET_S)
    return found.comparison, time.perf_counter() - began


def kernels(chosen: argparse.Namespace) -> Verdicts:
    """Verdicts of all cells in turns; a process of its own confirms them."""
    bench, alpha, chance = Bench(chosen.device), share(10, 1), random.Random(1)
    file, ends, verdicts = chosen.out / "kernels.json", time.monotonic() + chosen.seconds, []
    with bench.device.lock():
        plans = [bench.plan(name, *{**KERNELS, **LONG}[name]) for name in chosen.only]
        cells = [(plan, percent) for plan in plans for percent in chosen.percents
                 if percent != 1 or plan["duration_ns"] >= 1e4]  # fmt: skip
        for plan, percent in (cell for _ in range(chosen.turns) for cell in chance.sample(cells, len(cells))):
            if time.monotonic() < ends:
                first, seconds = compared(bench, plan, percent, alpha, chance.getrandbits(32))
                verdicts.append({"workload": plan["kernel"], "percent": percent, "duration_ns": plan["duration_ns"],
                                 "seconds": seconds, "first": msgspec.to_builtins(first)})  # fmt: skip
    file.write_text(json.dumps({"alpha": alpha, "plans": plans, "verdicts": verdicts}), encoding="utf-8")
    subprocess.run([sys.executable, __file__, "confirm", str(file), "--device", chosen.device], check=True)
    verdicts = json.loads(file.read_text(encoding="utf-8"))["verdicts"]
    (chosen.out / "blocks").mkdir(exist_ok=True)
    for kernel in {one["workload"] for one in verdicts}:  # in the form of tests/replays
        same = [one["first"] for one in verdicts if one["workload"] == kernel and not one["percent"]]
        blocks = {key: [round(1e7 * value) for one in same for value in one[key]] for key in ("r", "means")}
        document = {"kernel": kernel, "gpu": bench.device.facts.name, "unit": 1e-7,
                    "sequences": [{"percent": 0.0, **blocks}]}  # fmt: skip
        (chosen.out / "blocks" / f"{kernel.replace(' ', '-')}.json").write_text(json.dumps(document), encoding="utf-8")
    return verdicts


def confirm(file: Path, device: str) -> None:
    """Final verdicts, with a second comparison of what is SLOWER."""
    document = json.loads(file.read_text(encoding="utf-8"))
    bench, plans = Bench(device), {plan["kernel"]: plan for plan in document["plans"]}
    case = TimeCase(Key("campaign.py", "test", "kernel"), "gpu", TIGHT, document["alpha"])
    with bench.device.lock():
        for number, one in enumerate(document["verdicts"]):
            comparisons = [msgspec.convert(one["first"], Comparison)]
            if by_blocks(case, *comparisons).verdict.is_regression:
                plan = plans[one["workload"]]
                comparisons.append(compared(bench, plan, one["percent"], CONFIRMING_ALPHA, number)[0])
            judged, first = by_blocks(case, *comparisons), comparisons[0]
            one |= {"verdict": judged.verdict.value, "reason": judged.reason, "ratio": first.ratio,
                    "blocks": len(first.r)}  # fmt: skip
    file.write_text(json.dumps(document), encoding="utf-8")


def callables(chosen: argparse.Namespace) -> Verdicts:
    """Verdicts of ``--runs`` runs of pytest for each percent."""
    verdicts, sizes, ends = Verdicts(), {}, time.monotonic() + chosen.seconds
    with tempfile.TemporaryDirectory() as name:
        folder, report = Path(name) / "project", Path(name) / "report.json"
        repository(folder, chosen.again)
        in_pytest(folder, folder / "baselines", "--update-baselines", *chosen.pytest)
        if percents := [str(percent) for percent in chosen.percents if percent]:
            sizes = json.loads(subprocess.check_output([sys.executable, TESTS, *percents], cwd=folder))
            print(*sizes.items(), sep="\n", flush=True)
        for number, percent in ((number, percent) for number in range(chosen.runs) for percent in chosen.percents):
            if time.monotonic() < ends:
                more = {name: of[str(percent)][0] for name, of in sizes.items() if percent}
                commit(folder, chosen.again, more, f"Edit {number}, {percent} percent more")
                report.unlink(missing_ok=True)
                gate = "--gpuperf", "--gpuperf-tolerance=tight", f"--gpuperf-report={report}"
                in_pytest(folder, report, *gate, *chosen.pytest)
                verdicts += verdicts_of(json.loads(report.read_text(encoding="utf-8")), percent)
    (chosen.out / "callables.json").write_text(json.dumps({"sizes": sizes, "verdicts": verdicts}), encoding="utf-8")
    return verdicts


def repository(folder: Path, again: int) -> None:
    """Make a git repository of the suite, whose tests run so often, each time on other arrays."""
    shutil.copytree(SUITE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".gitignore").write_text("__pycache__\n.gpuperf\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    commit(folder, again, {}, "Callables")


def commit(folder: Path, again: int, more: dict[str, float], message: str) -> None:
    """Commit the tests with so many percent more work; the message makes another file of equal work."""
    text = (SUITE / TESTS).read_text(encoding="utf-8").replace("AGAIN = 1", f"AGAIN = {again}")
    (folder / TESTS).write_text(text.replace("MORE = {}", f"MORE = {more}  # {message}"), encoding="utf-8")
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    for command in (("add", "-A"), ("commit", "-q", "-m", message)):
        subprocess.run(["git", *who, *command], cwd=folder, check=True)


def in_pytest(folder: Path, made: Path, *arguments: str) -> None:
    """Run pytest, which has to make ``made``.  Raises ``SystemExit`` with its output otherwise."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    if not made.exists():
        raise SystemExit(done.stdout[-3000:] + done.stderr[-3000:])


def verdicts_of(document: dict[str, Any], percent: int) -> Iterator[dict[str, Any]]:
    for work in (work for test in document["tests"] for work in test.get("workloads", ())):
        for one in (one for one in work.get("judgements", ()) if one["kind"] == "time"):
            figures = one.get("time") or {}
            yield {"workload": work["key"]["workload"], "percent": percent, "verdict": one["verdict"],
                   "duration_ns": figures.get("after_ns"), "ratio": figures.get("ratio"),
                   "blocks": figures.get("blocks")}  # fmt: skip


def report(file: Path, verdicts: Verdicts, wanted: dict[int, float]) -> int:
    """Write and print a page; 1 if equal work was red, or too few of the slower were (``wanted`` shares)."""
    cells: dict[tuple[str, int], Verdicts] = {}
    for one in verdicts:
        cells.setdefault((one["workload"], one["percent"]), []).append(one)
    rows: list[Sequence[object]] = [COLUMNS, ["---"] * len(COLUMNS)]
    for (workload, percent), found in sorted(cells.items()):
        counts = [[one["verdict"] for one in found].count(name) for name in ("SLOWER", "SAME", "FASTER")]
        us, ratio, blocks, seconds = (
            statistics.median([one[key] for one in found if one.get(key)] or [0])
            for key in ("duration_ns", "ratio", "blocks", "seconds")
        )
        rows.append((workload, f"{us / 1000:.4g}", f"{percent} %", len(found), *counts, len(found) - sum(counts),
                     f"{ratio:.4f}", f"{blocks:g}", f"{seconds:.2f}" if seconds else ""))  # fmt: skip
    lines = [f"# Verdicts of known truth: {file.stem}", "", *(f"| {' | '.join(map(str, one))} |" for one in rows), ""]
    broken = not verdicts
    for percent in sorted({percent for _, percent in cells}):
        names = [one["verdict"] for one in verdicts if one["percent"] == percent]
        red, least = names.count("SLOWER"), wanted.get(percent, 0.0) * len(names)
        broken |= red > 0 if not percent else red < least
        lines.append(f"* +{percent} %: {red} of {len(names)} SLOWER" + (f", wanted {least:g}" if least else ""))
    lines.append("* a promise is broken" if broken else "* no promise is broken")
    print(text := "\n".join(lines) + "\n")
    file.write_text(text, encoding="utf-8")
    return int(broken)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in WANTED:
        one = commands.add_parser(name)
        one.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for what is found")
        one.add_argument("--seconds", type=float, default=600.0, help="take no verdict after so many")
        one.add_argument("--percents", type=int, nargs="+", default=[0, 0, 1, 2], help="slower, as often as named")
        one.add_argument("--only", nargs="+", choices=[*KERNELS, *LONG], default=[*KERNELS], metavar="KERNEL")
        one.add_argument("--turns", type=int, default=20, help="over all kernels")
        one.add_argument("--runs", type=int, default=1, help="of pytest, for each percent")
        one.add_argument("--again", type=int, default=1, help="callables a run, times nine")
        one.add_argument("--device", default=DEVICE, help=argparse.SUPPRESS)
    commands.choices["callables"].add_argument("pytest", nargs="*", help="more for pytest, behind --: -k torch")
    inner = commands.add_parser("confirm", help=argparse.SUPPRESS)
    inner.add_argument("file", type=Path)
    inner.add_argument("--device")
    chosen = parser.parse_args(arguments)
    if chosen.command == "confirm":
        confirm(chosen.file, chosen.device)
        return 0
    chosen.out.mkdir(parents=True, exist_ok=True)
    verdicts = (callables if chosen.command == "callables" else kernels)(chosen)
    return report(chosen.out / f"{chosen.command}.md", verdicts, WANTED[chosen.command])


if __name__ == "__main__":
    sys.exit(main())
