"""Gates a workload's time: its comparison and the verdict.  A slower workload waits for a second process.

An unchanged kernel is not compared.  A changed one is paired with the machine code of its baseline, a callable with the
revision of its baseline in a process of its own.  ``judge`` decides.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.layout import cubin_path
from pytest_gpuperf.compile.compile_errors import CompileProblem
from pytest_gpuperf.compile.machine_code.binary import stored_binary
from pytest_gpuperf.device.arguments import recorded_arguments
from pytest_gpuperf.device.device_errors import LaunchError, LoadError
from pytest_gpuperf.device.launch import Launch, attributes_of, configuration_of, require_limits
from pytest_gpuperf.judge import time_verdict
from pytest_gpuperf.judge.decision import CONFIRMING_ALPHA, Comparison
from pytest_gpuperf.judge.same_work import explain, other_arguments
from pytest_gpuperf.judge.time_verdict import Confirmation, Suspect, TimeCase
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.limits import Limits
from pytest_gpuperf.model.result import LaunchedKernel
from pytest_gpuperf.model.task import RevisionTask, SuspectPlace
from pytest_gpuperf.model.time_record import TimeRecord, mean_time_ns
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.revision.pairing import may_have_changed, reference_for, serve
from pytest_gpuperf.revision.process import NotPaired
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import CheckedOnly, TestRecord
from pytest_gpuperf.timing.blocks import Reference
from pytest_gpuperf.timing.compare import Compared, compare
from pytest_gpuperf.timing.cubin_reference import BaselineLaunch, CubinReference, PairedWorkloads
from pytest_gpuperf.timing.process_reference import limits_of_processes
from pytest_gpuperf.timing.rounds import Rounds
from pytest_gpuperf.workload.check import check_again
from pytest_gpuperf.workload.confirm_server import send_finding
from pytest_gpuperf.workload.figures import measure_figures
from pytest_gpuperf.workload.request import Request
from pytest_gpuperf.workload.timed_workload import TimedWorkload, draw_aa_test, interval_of

_REMEDY = "Restore the baselines from version control, or record the workload again with --update-baselines=all"
_ACCEPT = "record the baseline again with pytest --update-baselines if that is intended"
_SEPARATE = "change the arguments in a commit of their own, or compare with committed baselines"


@dataclasses.dataclass(frozen=True)
class Timed:
    """A workload's time with its judgement."""

    measured: Rounds
    judgement: Judgement | None = None
    final_verdict: Callable[[Sequence[Confirmation]], Judgement | None] | None = None
    """The final judgement of a slower workload, by the findings of other processes at the end of the test."""
    comparison: Comparison | None = None
    problem: str = ""
    """Why there is no comparison, for the process that gates."""
    kernels: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Of the callable that it was compared with: nanoseconds of each kernel, by symbol."""


def time_workload(run: Run, test: TestRecord, request: Request) -> CheckedOnly | None:
    """Time and judge the workload and its secondary metrics; why there is no time, where it needs none."""
    evidence, confirming = test.workloads[request.name], run.confirming
    work = TimedWorkload(run, request, evidence.key, request.identity())
    if confirming is None and run.link is not None and request.launch is None and request.against is None:
        serve(run, run.link, request.name, request.sample)
    passed_over = not confirming.confirms(work.key) if confirming else isinstance(run.options.task, RevisionTask)
    described = Timed(Rounds()) if run.describes else None
    timed = described or (Timed(work.measure_briefly()) if passed_over else _gate_time(work))
    measured = work.measure_for_record() if run.options.update is not None and timed.measured.rounds else timed.measured
    seen = {} if request.launch is not None else next(map(dict, reversed(run.timer.kernel_breakdown)), {})
    if len(test.workloads) == 1 and timed.judgement is not None and not work.confirms:
        draw_aa_test(work)
    if measured.rounds or described:
        if not passed_over:
            check_again(run, request, timed_runs=measured.samples)
        evidence = msgspec.structs.replace(
            evidence, time=work.record(measured.rounds, seen), disturbances=measured.disturbed,
            interval_ns=interval_of(measured.rounds), kernels=tuple(_with_times(evidence.kernels, seen)),
            baseline_kernels=dict(timed.kernels or (work.baseline.kernel_breakdown if work.baseline else {})),
            elapsed_ns=measured.elapsed_ns,
        )  # fmt: skip
    judged = [timed.judgement] if timed.judgement is not None else []
    test.add(msgspec.structs.replace(evidence, judgements=(*evidence.judgements, *judged)))
    if timed.final_verdict and timed.judgement and timed.judgement.verdict is Verdict.SLOWER and not work.confirms:
        took_s = timed.comparison.seconds if timed.comparison is not None else 0.0
        budget_s = max(request.budget_s, took_s)
        test.suspects.append(Suspect(timed.judgement, work.identity, timed.final_verdict, budget_s))
    if confirming is not None:
        time_ns = measured.time_ns if measured.rounds else 0.0
        place = SuspectPlace(key=work.key, kind="time")
        send_finding(run, Confirmation(
            place=place, identity=work.identity, comparison=timed.comparison, problem=timed.problem, time_ns=time_ns
        ))  # fmt: skip
    measure_figures(work, test)
    if run.options.update is not None:
        with contextlib.suppress(MemoryError):  # next to large arrays; a later test has room
            _ = run.gpu.roofs
    return None if measured.rounds else CheckedOnly(f"{request.name}: unchanged, so not timed")


def _with_times(kernels: Sequence[LaunchedKernel], times_ns: Mapping[str, float]) -> Iterator[LaunchedKernel]:
    """The kernels with the times of their symbols, each with the first of its symbol alone."""
    times = dict(times_ns)
    for one in kernels:
        yield msgspec.structs.replace(one, time_ns=times.pop(one.symbol, None))


def _gate_time(work: TimedWorkload) -> Timed:
    record, launch, which = work.baseline, work.request.launch, work.run.options.time
    case = _case(work, record)
    if work.request.against is not None:
        sides = work.request.against.sample, work.request.sample
        return _gate_by_blocks(work, case, PairedWorkloads(work.run.device, work.timer, sides))
    if record is None:
        measured = work.measure_rounds()
        return Timed(measured, time_verdict.new(case, measured.time_ns), problem="there is no baseline")
    if launch is None:
        return _gate_callable(work, case, record)
    if which == "all" or not work.identity.same_execution(record.identity):
        return _gate_kernel(work, case, record, launch)
    reason = "the machine code and its launch are those of the baseline"
    if which == "changed":
        return Timed(Rounds(), time_verdict.unchanged(case, f"{reason}; not timed"))
    measured = work.measure_briefly()
    return Timed(measured, time_verdict.unchanged(case, reason, measured.time_ns), problem=reason)


def _case(work: TimedWorkload, record: TimeRecord | None) -> TimeCase:
    run, request, cause, record_ns = work.run, work.request, "", 0.0
    if record is not None and run.revision is None and record.rounds:
        alike = (record.cache, record.timer) == (request.cache, work.timer.name)
        record_ns = mean_time_ns(record.rounds) if alike else 0.0
    if request.launch is not None and record is not None and not work.identity.same_execution(record.identity):
        cause = explain(record.identity, work.identity)
        cause += "; the baseline ran with its own arguments" if other_arguments(record.identity, work.identity) else ""
    return TimeCase(
        key=work.key, target=work.target, limits=request.limits,
        alpha=CONFIRMING_ALPHA if work.confirms else run.next_share(work.key.node_id),
        cause=cause, record_ns=record_ns, gates=request.against is None or request.most is not None,
        reference=request.against.name if request.against is not None else "",
    )  # fmt: skip


def _widened(work: TimedWorkload, case: TimeCase) -> TimeCase:
    """The case with limits that accept ``min_delta_us``, on top of what the request allows over the reference."""
    limits, request = case.limits.at_least(work.least_tolerance), work.request
    delta_us = request.min_delta_us if limits is not case.limits else 0.0
    if request.most is not None:
        limits = Limits(*(request.most * (1 + each) - 1 for each in limits))
    return dataclasses.replace(case, limits=limits, min_delta_us=delta_us)


def _not_comparable(measured: Rounds, case: TimeCase, why: str) -> Timed:
    return Timed(measured, time_verdict.not_comparable(case, why, measured.time_ns), problem=why)


# --- kernels -------------------------------------------------------------------------------------


def _gate_kernel(work: TimedWorkload, case: TimeCase, record: TimeRecord, launch: Launch) -> Timed:
    run, request, problem = work.run, work.request, ""
    device, timer = run.device, work.timer
    try:
        baseline = baseline_launch(run, work.key, record, launch)
        reference = CubinReference(device, timer, launch, baseline, reset=request.reset, cache=request.cache)
        return _gate_by_blocks(work, case, reference)
    except NotLaunched as error:
        problem = str(error)
    except LoadError as error:
        problem = f"the baseline's machine code cannot be loaded: {error}"
    # Behind the handlers, whose error would keep the copies of the arrays.
    return _not_comparable(work.measure_rounds(), case, problem)


def _gate_by_blocks(work: TimedWorkload, case: TimeCase, reference: Reference) -> Timed:
    """Take blocks of both sides in this process."""
    case = _widened(work, case)
    compared = _compared(work, case, reference, work.expected_ns())
    first = compared.comparison

    def final_verdict(found: Sequence[Confirmation]) -> Judgement:
        return time_verdict.by_blocks(case, first, found[0].comparison)

    return Timed(compared.rounds, time_verdict.by_blocks(case, first), final_verdict, first)


def _compared(work: TimedWorkload, case: TimeCase, reference: Reference, duration_ns: float) -> Compared:
    sustained = work.request.sustained and not case.by_process
    return compare(
        work.run.device, reference, case.limits, case.alpha, seed=secrets.randbits(32), duration_ns=duration_ns,
        budget_s=work.request.budget_s, sustained=sustained,
    )  # fmt: skip


class NotLaunched(Exception):
    """The baseline's machine code cannot or may not be launched; the message says why and what to do."""


def baseline_launch(run: Run, key: Key, record: TimeRecord, launch: Launch) -> BaselineLaunch:
    """The baseline's kernel as launched, checked against the recorded hash and the launch.  Raises ``NotLaunched``.

    It runs on the candidate's arrays; under CI not if the default branch lacks it (``run.trust``).
    """
    if not record.cubin:
        raise NotLaunched(f"the baseline was recorded without its machine code. {_REMEDY}")
    try:
        cubin, old = run.store.cubin(record.cubin), record.identity
        binary = stored_binary(cubin, record.symbol, launch.binary.arch, old.code)
    except (BaselineError, CompileProblem) as problem:
        place = cubin_path(run.store.root, record.cubin)
        why = problem if isinstance(problem, BaselineError) else f"{place}: {problem}. {_REMEDY}"
        raise NotLaunched(f"the recorded machine code of {key} is refused: {why}") from problem
    binary = msgspec.structs.replace(binary, name=record.kernel, source_hash=old.source, toolchain=old.toolchain)
    if refusal := run.trust.why_not_launched(record.cubin):
        remedy = "compare by --gpuperf-against=merge-base:BRANCH"
        raise NotLaunched(f"{refusal}, and CI launches no such machine code: {remedy}")
    was, now = ([(one.offset, one.size) for one in code.parameters] for code in (binary, launch.binary))
    arguments = configuration = None
    try:
        launch.kernel.check_variables(binary, old.launch)
        if was != now or other_arguments(old, launch.identity()):
            arguments = recorded_arguments(old.arguments, launch.identity().arguments)
            launch.values_for(binary, arguments)  # raises for what does not fit the kernel's parameters
        if record.grid is not None and record.block is not None:
            attributes = attributes_of(old.launch)
            configuration = configuration_of(record.grid, record.block, record.dynamic_shared_bytes, attributes)
            require_limits(binary, run.device.facts, configuration)
    except LaunchError as problem:
        sizes = [", ".join(f"{size} bytes" for _, size in parameters) for parameters in (was, now)]
        changed = f"the parameters changed from ({sizes[0]}) to ({sizes[1]}), and " if was != now else ""
        remedy = _ACCEPT if run.revision is None else _SEPARATE
        raise NotLaunched(f"{changed}the baseline cannot be launched as recorded: {problem}: {remedy}") from problem
    return BaselineLaunch(binary, None if configuration == launch.configuration else configuration, arguments)


# --- callables -----------------------------------------------------------------------------------


def _gate_callable(work: TimedWorkload, case: TimeCase, record: TimeRecord) -> Timed:
    """Pair the callable with that of the baseline's revision, each in its process."""
    run, options, request = work.run, work.run.options, work.request
    measured = work.measure_rounds(budget_s=request.budget_s / 4)
    now_ns, was, now = measured.time_ns, record.identity.launch, work.identity.launch
    if was != now:
        return _not_comparable(measured, case, f"the workload changed: launch {was} became {now}")
    bound = time_verdict.record_bound(record.rounds) if record.rounds else math.inf
    by_choice = options.time == "all" or run.revision is not None or work.confirms
    if not by_choice and now_ns <= bound * (case.record_ns or now_ns) and not may_have_changed(run, work.key):
        reason = "no file that it may run changed since the commit of its baseline"
        return Timed(measured, time_verdict.unchanged(case, reason, now_ns), problem=reason)
    limits = limits_of_processes(case.limits, now_ns)
    case = _widened(work, dataclasses.replace(case, limits=limits, by_process=True))
    try:
        with reference_for(run, work.key, work.timer, request.sample, request.budget_s) as reference:
            first = _compared(work, case, reference, now_ns).comparison
    except NotPaired as problem:
        return _by_record(work, case, measured, max(bound, 1 + case.limits.tolerance), str(problem))

    def final_verdict(found: Sequence[Confirmation]) -> Judgement | None:
        return time_verdict.by_processes(case, [first, *(one.comparison for one in found if one.comparison)])

    judged, kernels = time_verdict.by_blocks(case, first), reference.timer.kernels_there
    return Timed(measured, judged, final_verdict, first, kernels=kernels)


def _by_record(work: TimedWorkload, case: TimeCase, measured: Rounds, bound: float, unpaired: str) -> Timed:
    """The verdict on a callable that cannot be paired, for this reason."""
    run, record, now_ns = work.run, work.baseline, measured.time_ns
    if run.revision is not None:
        return _not_comparable(measured, case, f"it cannot be paired with {run.revision.name}: {unpaired}")
    driver = record.session.driver if record is not None and record.session is not None else "unknown"
    other = "" if case.record_ns else "it was recorded with another timer or cache state"
    if case.record_ns and run.session.driver != driver:
        other = f"driver {driver}, now {run.session.driver}"
    if other:
        reason = f"its recorded time is not comparable here ({other}); not paired: {unpaired}"
        return Timed(measured, case.judgement(Verdict.INCONCLUSIVE, reason, now_ns=now_ns), problem=unpaired)

    def final_verdict(found: Sequence[Confirmation]) -> Judgement:
        return time_verdict.by_record(case, [now_ns, *(one.time_ns for one in found[:1])], bound, unpaired)

    return Timed(measured, final_verdict(()), final_verdict)
