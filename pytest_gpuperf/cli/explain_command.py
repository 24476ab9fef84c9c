"""``gpuperf explain``: what a workload costs, and why it changed, from the last run."""

from __future__ import annotations

import argparse
import difflib
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_gpuperf.advise.comparison import WARP, Side
from pytest_gpuperf.advise.roofs import shares_of
from pytest_gpuperf.advise.usage_from_counters import REQUESTS
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.baseline_folder import seen_from_root
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.explain import Estimates, WorkloadComparison, explain_each
from pytest_gpuperf.formatting import duration, first_of, quantity
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import LaunchedKernel, TestEvidence, WorkloadEvidence, unpacked
from pytest_gpuperf.model.roofs import ROOFS
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.process import last_run
from pytest_gpuperf.report.document import read_report
from pytest_gpuperf.report.message import INDENT, advice_lines, described, wrapped
from pytest_gpuperf.report.tables import details_table

CLOSE_MATCHES = 5
MOST_CAUSES = 4
MOST_ROOFS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    description = "a file, class or test, as pytest names it or by its path; or 'NODEID [workload]'"
    parser.add_argument("node_id", metavar="NODEID", nargs="?", default="", help=f"{description} (default: all)")
    parser.add_argument(
        "--details", action="store_true", help="show its counters as Nsight Compute does, with those of the baseline"
    )


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Explain workloads of the last run; returns the exit status, 0.  Raises ``GpuperfError``."""
    start = Path.cwd()
    path = last_run.find(start)
    if path is None:
        raise GpuperfError(
            f"no run has left its evidence in {start} or above in its repository ({last_run.FOLDER}/{last_run.FILE}): "
            "run pytest --gpuperf first"
        )
    root = path.parents[1]
    run = read_report(path, "run pytest --gpuperf again")
    name = parsed.node_id and seen_from_root(parsed.node_id, root)
    found = [(test, work) for test in run.tests for work in test.workloads if not name or work.key.is_of(name)]
    if not found:
        raise _unmatched(name, [work.key for test in run.tests for work in test.workloads])
    write(f"last run: {run.date}, gpuperf {run.plugin}, {path}\n")
    store = BaselineStore(root / run.baselines)
    write("\n" + "\n".join(explain_all(store, found, CompileCache(), details=parsed.details)))
    return 0


def _unmatched(name: str, keys: Iterable[Key]) -> GpuperfError:
    """The error for no match, with the nearest names."""
    names = list(map(str, keys))
    close = difflib.get_close_matches(name, names, n=CLOSE_MATCHES, cutoff=0.4)
    hint = f"close to it: {', '.join(close)}" if close else f"it has {first_of(names, CLOSE_MATCHES) or 'no workload'}"
    return GpuperfError(f"{name} is not in the last run; {hint}")


# --- lines on a workload: its figures, what differs from the baseline, and of what cause ---


def explain_all(
    store: BaselineStore, workloads: Sequence[tuple[TestEvidence, WorkloadEvidence]], cache: CompileCache | None, *,
    details: bool = False,
) -> Iterator[str]:  # fmt: skip
    """Lines on each of these workloads of a run, an empty one behind each.  Raises ``BaselineError``."""
    estimates = Estimates(store, unpacked(test for test, _ in workloads), cache)
    comparisons = [WorkloadComparison(estimates, work, one.workloads, one.device) for one, work in workloads]
    explained = explain_each(estimates, comparisons, locates_all=True)
    for (test, work), (before, after, advice) in zip(workloads, explained, strict=True):
        yield str(work.key)
        yield from wrapped(f"figures: {', '.join(_figures(after))}", INDENT)
        if after.time_ns is not None:
            roofs = {**test.peaks, **(store.roofs(test.device.slug) if test.device is not None else {})}
            yield from wrapped(f"roof: {_roofs(after, roofs)}", INDENT)
        yield from wrapped(f"baseline: {_compared(work, before, after)}", INDENT)
        if work.kernels:
            yield from wrapped(f"launches: {'; '.join(map(_launched, work.kernels))}", INDENT)
        telling = [one for one in work.judgements if one.verdict not in (Verdict.UNCHANGED, Verdict.NEW)]
        named = work.advice or advice
        yield from (f"{' ' * INDENT}{line}" for line in described(telling, explained=bool(named)))
        yield from advice_lines(named, MOST_CAUSES)
        if not named:
            none = "none can be named without a baseline" if before is None else "none found"
            yield from wrapped(f"cause: {none}", INDENT)
        if work.ncu_report:
            yield f"{' ' * INDENT}Nsight Compute: ncu-ui {shlex.quote(work.ncu_report)} (range {work.ncu_range})"
        yield from _details(store, test, work) if details else ()
        yield ""


def _launched(one: LaunchedKernel) -> str:
    """``hog 12 us, 40 registers, 96 bytes of local memory, cubin 6791c9``"""
    known = [f"{one.stack_bytes} bytes of local memory", f"cubin {one.cubin[:6]}"] if one.cubin else ["code not known"]
    times = f" {duration(one.time_ns)}" if one.time_ns is not None else ""
    return ", ".join([f"{one.name}{times}", f"{one.registers} registers", *known])


def _details(store: BaselineStore, test: TestEvidence, work: WorkloadEvidence) -> Iterator[str]:
    """Counters of the baseline and of the run, section by section; and how to get those that the run lacks."""
    models = store.targets() if test.device is None else (test.device.slug,)
    recorded = (record.counters for model in models if (record := store.time(model, work.key)) is not None)
    table = details_table(work.baseline_counters or next(filter(None, recorded), {}), work.counters)
    yield from () if table is None else ("", *(f"{' ' * INDENT}{line}" for line, _ in table.lines()))
    if REQUESTS.format("ld") not in work.counters:
        command = f"pytest --gpuperf --gpuperf-ncu=full {shlex.quote(work.key.node_id)}"
        yield f"{' ' * INDENT}the last run took {'few' if work.counters else 'no'} counters of it: {command}"


def _compared(work: WorkloadEvidence, before: Side | None, after: Side) -> str:
    """The other side of the workload's comparison."""
    if before is None:
        if any(judgement.verdict is Verdict.NOT_COMPARABLE for judgement in work.judgements):
            return "none that is comparable with this workload"
        return "none for this workload: record one with pytest --update-baselines"
    if before.static is None or after.static is None:
        return "times and counters" if before.counters and after.counters else "times alone"
    return f"the machine code {'is the same' if before.same_code(after) else 'differs'}"


def _roofs(side: Side, roofs: Mapping[str, float]) -> str:
    """``at 91 % of DRAM's roof (4.33 TB/s, declared); 12 % of FP32's roof ...``."""
    found = shares_of(side, lambda roof: roofs.get(roof, 0.0))
    if not roofs.keys() & ROOFS.keys():
        return "none is known of this GPU: pytest --update-baselines measures them"
    none = "none: declare bytes= or flops=, or count: pytest --gpuperf --gpuperf-ncu"
    return f"at {'; '.join(map(str, found[:MOST_ROOFS]))}" if found else none


def _figures(side: Side) -> list[str]:
    found = []
    if side.time_ns is not None:
        found.append(f"time {duration(side.time_ns)}")
        rates = zip(side.declared, ("B/s", "FLOP/s"), strict=True)
        found += [quantity(each / side.time_ns * 1e9, unit) for each, unit in rates if each is not None]
    if side.static is not None:
        found += _static_figures(side, side.static)
    return found or ["none"]


def _static_figures(side: Side, record: StaticRecord) -> list[str]:
    profile, run = record.profile, side.estimate
    spilled = "unknown" if profile.spill_bytes is None else profile.spill_bytes
    found = [f"{profile.registers} registers", f"{spilled} spilled bytes"]
    if record.occupancy is not None:
        found.append(f"occupancy {record.occupancy.fraction:.0%} (limited by {record.occupancy.limiter})")
    if run is not None:
        for memory, figure, words in (
            ("global", "sectors", "global request"),
            ("shared", "wavefronts", "shared-memory access"),
        ):
            known = [a for a in run.accesses if a.op.startswith(memory) and getattr(a, figure) is not None]
            if times := sum(a.times for a in known):
                found.append(f"{sum(a.times * getattr(a, figure) for a in known) / times:.3g} {figure} per {words}")
        size = side.block_size or WARP
        lanes = run.lanes * size / (math.ceil(size / WARP) * WARP)
        found.append(f"{lanes:.3g} of {WARP} lanes active")
    return [*found[:-1], f"{found[-1]} ({side.arch})"]
