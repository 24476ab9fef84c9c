"""Does the gate keep its promises on a real GPU?  Verdicts of known truth, in minutes.

    python benchmarks/paired_campaign.py kernels --seconds 300 --out DIR
    python benchmarks/paired_campaign.py old ../old --seconds 200 --out DIR     # the same cells by an older package
    python benchmarks/paired_campaign.py long --out DIR
    python benchmarks/paired_campaign.py callables --percents 0 --runs 5 --again 4 --out DIR
    python benchmarks/paired_campaign.py callables --percents 1 2 --runs 2 --out DIR

``kernels`` compares ten kernels of 2.5 us to 1 ms with themselves and with versions that are 1 and 2 % slower, as the
gate does in a run of ten tests, in turns until the time is over; equal code lies behind another function in its module.
``long`` has launches of 10 to 250 ms, 1 % slower.  A second process, one for all, compares again what is SLOWER.
``callables`` makes a git repository of ``campaign/suite``, records baselines, and runs ``pytest --gpuperf`` on edits of
it, which do as much more work as CUDA events find 1 and 2 % slower.  Each leaves a JSON file and
a page in ``--out``, ``kernels`` also blocks for ``decision_power.py --blocks DIR/blocks``.  Exit status 1 if a promise
is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from campaign.callables import commit, gated, recorded, repository, sizes_of
from campaign.kernels import KERNELS, LONG, Bench
from campaign.page import report

ROOT = Path(__file__).resolve().parents[1]
DEVICE = "pytest_gpuperf.device.discovery:open_device"
BUDGET_S = 5.0


def compared(bench: Bench, plan: dict[str, Any], percent: int, alpha: float, seed: int) -> tuple[Any, float]:
    """One comparison as the gate takes it, as a dictionary, and its seconds, loading included."""
    import msgspec

    from pytest_gpuperf.model.limits import LIMITS
    from pytest_gpuperf.timing.compare import compare
    from pytest_gpuperf.timing.cubin_opponent import BaselineLaunch, CubinOpponent

    baseline, candidate = _launches(bench, plan, percent)
    began = time.perf_counter()
    opponent = CubinOpponent(bench.device, bench.timer, candidate, BaselineLaunch(baseline.binary))
    found = compare(
        bench.device, opponent, LIMITS, alpha, seed=seed, duration_ns=plan["duration_ns"], budget_s=BUDGET_S
    )  # fmt: skip
    return msgspec.to_builtins(found.comparison), time.perf_counter() - began


def compared_before(bench: Bench, plan: dict[str, Any], percent: int, alpha: float, seed: int) -> tuple[Any, float]:
    """The same by the package at commit 0a0ac3c5."""
    from pytest_gpuperf.judge.policy import Policy
    from pytest_gpuperf.timing.paired_run import pair

    baseline, candidate = _launches(bench, plan, percent)
    began = time.perf_counter()
    found = pair(
        bench.device, bench.timer, candidate, baseline.binary, Policy(alpha=alpha, alpha_faster=10 * alpha),
        seed=seed, duration_ns=plan["duration_ns"], budget_s=BUDGET_S,
    ).paired  # fmt: skip
    decided = {"verdict": found.decision.value.upper(), "ratio": found.ratio, "blocks": found.blocks}
    return decided, time.perf_counter() - began


def _launches(bench: Bench, plan: dict[str, Any], percent: int) -> tuple[Any, Any]:
    count, most = plan["counts"], plan["most"]
    return (bench.launch(plan["family"], count[0], most),
            bench.launch(plan["family"], count[percent], most, behind=True))  # fmt: skip


def take(bench: Bench, plans: Sequence[dict[str, Any]], chosen: argparse.Namespace, by: Any) -> list[dict[str, Any]]:
    """Verdicts of all cells in turns: in every turn two of equal code, and one of each slowdown that is promised."""
    chance, found, ends = random.Random(chosen.seed), [], time.monotonic() + chosen.seconds
    turn = [(plan, percent) for plan in plans for percent in chosen.percents
            if percent != 1 or plan["duration_ns"] >= 1e4]  # fmt: skip
    for _ in range(chosen.turns):
        for plan, percent in chance.sample(turn, len(turn)):
            if time.monotonic() > ends:
                return found
            seed = chance.getrandbits(32)
            first, seconds = by(bench, plan, percent, chosen.alpha, seed)
            found.append({"workload": plan["kernel"], "percent": percent, "duration_ns": plan["duration_ns"],
                          "seconds": seconds, "first": first})  # fmt: skip
    return found


def kernels(chosen: argparse.Namespace) -> int:
    from pytest_gpuperf.judge.decision import share

    bench, chosen.alpha = Bench(chosen.device), share(10, 1)
    wanted = KERNELS if chosen.command == "kernels" else LONG
    with bench.device.lock():
        plans = [bench.plan(name, one) for name, one in wanted.items() if not chosen.only or name in chosen.only]
        verdicts = take(bench, plans, chosen, compared)
    gpu = f"{bench.device.facts.name}, {bench.timer.name}"
    document = {"gpu": gpu, "alpha": chosen.alpha, "plans": plans, "verdicts": verdicts}
    file = chosen.out / f"{chosen.command}.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    if failed := _python(["confirm", "--of", chosen.command, "--out", str(chosen.out), "--device", chosen.device]):
        return failed
    verdicts = json.loads(file.read_text(encoding="utf-8"))["verdicts"]
    if chosen.command == "kernels":
        _leave_blocks(bench.device.facts.name, verdicts, chosen.out / "blocks")
    return report(
        file.with_suffix(".md"), gpu, verdicts, {1: 0.99, 2: 0.995} if chosen.command == "kernels" else {1: 1.0}
    )


def confirm(chosen: argparse.Namespace) -> int:
    """Final verdicts, with a second comparison of what is SLOWER; in a process of its own."""
    import msgspec

    from pytest_gpuperf.judge.decision import CONFIRMING_ALPHA, Comparison
    from pytest_gpuperf.judge.time_verdict import TimeCase, by_blocks
    from pytest_gpuperf.model.evidence import Key
    from pytest_gpuperf.model.limits import LIMITS

    file = chosen.out / f"{chosen.of}.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    bench, plans = Bench(chosen.device), {plan["kernel"]: plan for plan in document["plans"]}
    case = TimeCase(Key("campaign.py", "test", "kernel"), "gpu", LIMITS, document["alpha"])
    with bench.device.lock():
        for number, one in enumerate(document["verdicts"]):
            comparisons = [msgspec.convert(one["first"], Comparison)]
            if by_blocks(case, *comparisons).verdict.is_regression:
                plan = plans[one["workload"]]
                second, one["more_seconds"] = compared(bench, plan, one["percent"], CONFIRMING_ALPHA, number)
                comparisons.append(msgspec.convert(second, Comparison))
            judged = by_blocks(case, *comparisons)
            one |= {"verdict": judged.verdict.value, "reason": judged.reason, "ratio": comparisons[0].ratio,
                    "blocks": len(comparisons[0].r)}  # fmt: skip
    file.write_text(json.dumps(document), encoding="utf-8")
    return 0


def _leave_blocks(gpu: str, verdicts: Sequence[dict[str, Any]], folder: Path) -> None:
    """What equal kernels showed, in the form of ``tests/replays``."""
    folder.mkdir(exist_ok=True)
    for kernel in {one["workload"] for one in verdicts}:
        same = [one["first"] for one in verdicts if one["workload"] == kernel and not one["percent"]]
        blocks = {key: [round(1e7 * value) for one in same for value in one[key]] for key in ("r", "means")}
        document = {"kernel": kernel, "gpu": gpu, "unit": 1e-7, "sequences": [{"percent": 0.0, **blocks}]}
        (folder / f"{kernel.replace(' ', '-')}.json").write_text(json.dumps(document), encoding="utf-8")


def old(chosen: argparse.Namespace) -> int:
    """The cells of ``kernels`` by an older package, the first process alone."""
    if not chosen.inside:
        path = os.pathsep.join([str(chosen.path.resolve()), os.environ.get("PYTHONPATH", "")])
        return _python([*chosen.arguments, "--inside"], PYTHONPATH=path)
    document = json.loads((chosen.out / "kernels.json").read_text(encoding="utf-8"))
    bench, chosen.alpha = Bench(chosen.device), document["alpha"]
    with bench.device.lock():
        verdicts = [{**one, **one["first"]} for one in take(bench, document["plans"], chosen, compared_before)]
    return report(chosen.out / "old.md", f"{document['gpu']}, before, one process", verdicts, {})


def _python(arguments: Sequence[str], **environment: str) -> int:
    return subprocess.call([sys.executable, __file__, *arguments], env={**os.environ, **environment})


def callables(chosen: argparse.Namespace) -> int:
    verdicts: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder, ends = Path(name) / "project", time.monotonic() + chosen.seconds
        repository(folder, chosen.again)
        recorded(folder, chosen.pytest)
        sizes = sizes_of(folder, chosen.percents) if any(chosen.percents) else {}
        for number in range(chosen.runs):
            for percent in chosen.percents:
                if time.monotonic() < ends:
                    more = {name: of[str(percent)][0] for name, of in sizes.items() if percent}
                    commit(folder, chosen.again, more, f"Edit {number}, {percent} percent more")
                    verdicts += gated(folder, percent, chosen.pytest)
                    document = json.dumps({"sizes": sizes, "verdicts": verdicts})
                    (chosen.out / "callables.json").write_text(document, encoding="utf-8")
    return report(chosen.out / "callables.md", "callables against a commit", verdicts, {1: 0.9, 2: 0.98})


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    does = {"kernels": kernels, "long": kernels, "old": old, "confirm": confirm, "callables": callables}
    for name in does:
        one = commands.add_parser(name, help=argparse.SUPPRESS if name == "confirm" else name)
        one.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for what is found")
        one.add_argument("--device", default=DEVICE, help=argparse.SUPPRESS)
        one.add_argument("--seconds", type=float, default=600.0, help="take no verdict after so many")
        one.add_argument("--turns", type=int, default=3 if name == "long" else 20, help="over all cells")
        one.add_argument("--percents", type=int, nargs="+", help="of more work, as often in a turn as named",
                         default={"long": [1], "callables": [0, 1, 2]}.get(name, [0, 0, 1, 2]))  # fmt: skip
        one.add_argument("--seed", type=int, default=1, help="of the order of cells and of the coins")
        one.add_argument("--only", nargs="+", metavar="KERNEL", help="take these alone")
    for name, flag in (("confirm", "--of"), ("old", "path")):
        commands.choices[name].add_argument(flag, type=Path if name == "old" else str)
    commands.choices["old"].add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    for flag, what in (("--runs", "of pytest, for each percent"), ("--again", "callables a run, times nine")):
        commands.choices["callables"].add_argument(flag, type=int, default=1, help=what)
    commands.choices["callables"].add_argument("pytest", nargs="*", help="more for pytest, behind --: -k torch")
    chosen = parser.parse_args(arguments)
    chosen.arguments = list(sys.argv[1:] if arguments is None else arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    if not getattr(chosen, "inside", False):
        sys.path.insert(0, str(ROOT))
    return does[chosen.command](chosen)


if __name__ == "__main__":
    sys.exit(main())
