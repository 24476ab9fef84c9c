"""Missing records: the cause of each by what the run collected, how its test ended and what it found."""

from __future__ import annotations

from typing import Any

import pytest
from baseline_samples import make_session, make_time
from run_samples import COMPILER, H200, MODULE, TEST, Run, judgement, key, static_record, workload

from pytest_gpuperf.baselines.store import Update
from pytest_gpuperf.model.result import Outcome, TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.results import Ended
from pytest_gpuperf.session.missing import REMEDIES, MissingCause, note_missing

NODE = f"{MODULE}::{TEST}"
NAME = f"{NODE} [copy]"


def noted(run: Run, status: int = 0) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines that fail the run, and remarks."""
    outcome = Outcome()
    note_missing(run.session(status), run.shared, outcome)
    return outcome.missing, outcome.left_out


def evidence(*works: WorkloadEvidence, **fields: Any) -> TestEvidence:
    return TestEvidence(module=MODULE, test=TEST, workloads=works, **fields)


def kernel(name: str = "copy", arch: str = "sm_90", **fields: Any) -> WorkloadEvidence:
    return workload(name, **{"static": {arch: static_record()}, "toolchain": COMPILER, **fields})


PASSED = Ended("passed")
FOR_TIME = evidence(status="checked only", reason="no times")
TIME = make_time(make_session(), cubin="")
JUDGED = workload("copy", judgement(Verdict.SAME, "static"), static={"sm_90": static_record()}, toolchain=COMPILER)
OTHER_ARCH, UNLAUNCHED = kernel(arch="sm_80"), kernel("under another name", launched=False)
DELETED, SKIPPED, NEEDED_GPU, NOT_REACHED = list(MissingCause)[:4]
CASES: dict[str, tuple[dict[str, Any], Ended | None, TestEvidence | None, str]] = {
    # what was found, how the test ended, its evidence, and then: the cause, with names; empty if nothing is missing
    "judged": ({}, PASSED, evidence(JUDGED), ""),
    "compiled alone": ({}, PASSED, evidence(UNLAUNCHED), ""),
    "passed without the plugin": ({}, PASSED, None, f"{NOT_REACHED.value}: {NAME}."),
    "stopped for a time": ({}, PASSED, FOR_TIME, f"{NOT_REACHED.value}: {NAME} (no times)."),
    "another architecture": ({}, PASSED, evidence(OTHER_ARCH), f"{NOT_REACHED.value}: {NAME}."),
    "another of Triton's": ({}, PASSED, evidence(kernel(arch="sm_80", toolchain="Triton 3.6.0")), ""),
    "another of a GPU's": ({}, PASSED, evidence(OTHER_ARCH, device=H200), ""),
    "a callable instead": ({}, Ended("skipped"), evidence(workload("copy")), f"{NOT_REACHED.value}: {NAME}."),
    "stopped for a GPU": ({}, PASSED, evidence(status="static only"), f"{NEEDED_GPU.value}: {NAME}."),
    "ran past it without a GPU": (
        {}, PASSED, evidence(status="static only", reason="x", whole=True), f"{NOT_REACHED.value}: {NAME}."
    ),
    "failed by the gate": ({}, Ended("failed"), evidence(whole=True), f"{NOT_REACHED.value}: {NAME}."),
    "failed": ({}, Ended("failed"), evidence(), ""),
    "skipped with a GPU": ({}, Ended("skipped", "no GPU"), evidence(device=H200), f"{SKIPPED.value}: {NODE} (no GPU)."),
    "skipped without a GPU": ({}, Ended("skipped", "no CuPy"), None, f"{NEEDED_GPU.value}: {NAME} (no CuPy)."),
    "skipped for want of one": ({}, Ended("skipped", "a GPU"), None, f"{NEEDED_GPU.value}: {NAME} (a GPU)."),
    "file broken": ({"tests": set(), "failed": {MODULE}}, None, None, ""),
    "file skipped": ({"tests": set(), "skipped": {MODULE: "CUDA"}}, None, None, f"{NEEDED_GPU.value}: {NAME} (CUDA)."),
    "not run": ({}, None, None, f"{NOT_REACHED.value}: {NAME} (the run ended before it)."),
    "deleted": ({"tests": set(), "selected": set()}, None, None, f"{DELETED.value}: {NODE}."),
}  # fmt: skip


@pytest.fixture
def recorded(run: Run) -> Run:
    """A strict run with the record of one kernel."""
    run.store.write(Update(static={("sm_90", COMPILER, key()): static_record()}))
    return run.with_options(open="fail")


@pytest.mark.parametrize("case", CASES)
def test_cause(recorded: Run, case: str) -> None:
    found, end, tested, cause = CASES[case]
    results = recorded.collected(TEST, **found)
    results.ends |= {NODE: end} if end is not None else {}
    results.by_test |= {NODE: tested} if tested is not None else {}
    recorded.shared.native_arch = "sm_90"
    red, remarks = noted(recorded)
    if not cause:
        assert (red, remarks) == ((), ())
    else:
        (line,) = red or remarks
        assert bool(red) == (NEEDED_GPU.value not in cause)
        assert line.startswith(f"1 workload NOT-MEASURED on sm_90: {cause} To do: ")
        assert next(text for one, text in REMEDIES.items() if one.value in cause) in line


LEFT_OUT = (
    "partial run: it left out 1 of 1 workload with a baseline (by paths, -k, -m, --lf or a plugin); a run of all tests "
    "says what is missing"
)


def test_test_that_was_left_out_is_counted(recorded: Run) -> None:
    recorded.collected(TEST, selected=set())
    assert noted(recorded) == ((), (LEFT_OUT,))
    recorded.collected(TEST)
    assert noted(recorded, 1) == ((), (LEFT_OUT,))
    recorded.collected(tests=set(), modules=set())
    assert noted(recorded) == ((), (LEFT_OUT,))


@pytest.mark.parametrize(("here", "archs", "expected"), [
    ("sm_90", (), True), ("sm_80", (), False), (None, (), True), (None, ("sm_80",), False),
])  # fmt: skip
def test_kernel_that_names_a_variant_is_missing_on_its_gpu_and_without_one(
    run: Run, here: str | None, archs: tuple[str, ...], *, expected: bool
) -> None:
    run.store.write(Update(static={("sm_90a", COMPILER, key()): static_record()}))
    run.collected(TEST).ends[NODE] = PASSED
    run.shared.native_arch, run.shared.targets = here, ("sm_80",)
    red, remarks = noted(run.with_options(open="fail", archs=archs))
    assert any("NOT-MEASURED on sm_90a: " in line for line in (*red, *remarks)) == expected


@pytest.mark.parametrize("lf", [True, False])
def test_deletion_shows_below_the_paths_of_a_run_alone(recorded: Run, lf: bool) -> None:
    recorded.collected()
    recorded.config.option.lf = lf
    for place, is_below in (("tests", True), (MODULE, True), ("tests/test_other.py", False), (f"{MODULE}::x", False)):
        recorded.config.args = [str(recorded.config.rootpath / place)]
        assert bool(noted(recorded)[0]) == (is_below and not lf)


def test_workload_that_other_gpus_alone_are_timed_with_is_not_this_ones(recorded: Run) -> None:
    results = recorded.collected(TEST)
    results.ends[NODE] = PASSED
    results.by_test[NODE] = evidence(workload("here", judgement(Verdict.SAME, workload="here")), device=H200)
    recorded.store.write(Update(time={("nvidia-a100", key()): TIME, (H200.slug, key("here")): TIME}))
    assert noted(recorded) == ((), ())
    results.by_test[NODE] = evidence(device=H200)
    ((line,), _) = noted(recorded)
    assert line.startswith(f"1 workload NOT-MEASURED on {H200.slug}: {NOT_REACHED.value}: {NODE} [here]. ")


def test_update_and_a_run_that_was_cut_short_only_name_what_is_missing(recorded: Run) -> None:
    recorded.collected(TEST)
    assert (noted(recorded, 1)[0], noted(recorded, 2)) == ((), ((), ()))
    recorded.collected()
    red, remarks = noted(recorded.with_options(update="all"))
    assert (red, len(remarks)) == ((), 1)
    assert noted(recorded.with_options(enabled=False, update=None)) == ((), ())


# --- targets ---------------------------------------------------------------------------------------


def test_targets_without_records_are_missing_unless_they_are_left_out(recorded: Run) -> None:
    recorded.store.write(Update(static={(arch, COMPILER, key()): static_record() for arch in ("sm_80", "sm_86")}))
    recorded.collected(TEST).ends[NODE] = Ended("failed")
    left_out = ("partial run: --gpuperf-arch leaves out sm_80, sm_86, with baselines",)
    assert noted(recorded.with_options(archs=("sm_90",))) == ((), left_out)
    recorded.with_options(archs=())
    listing = recorded.options.baselines / "manifest.json"
    for arch in ("sm_80", "sm_86"):
        (recorded.options.baselines / arch / "tests" / "test_copy.jsonl").unlink()
    recorded.store.forget()
    ((line,), _) = noted(recorded)
    restore = "or restore them from git; or drop them: gpuperf baselines rm TARGET"
    assert line == (
        f"{listing} names sm_80, sm_86, which has no baselines: NOT-MEASURED. To do: record them: pytest "
        f"--update-baselines=new --gpuperf-arch=sm_80,sm_86; {restore}"
    )
    assert noted(recorded.with_options(open="warn"))[1] == (line,)
    assert noted(recorded.with_options(archs=("sm_90",), open="fail")) == ((), ())


def test_gpu_without_records_is_recorded_where_there_is_one(recorded: Run) -> None:
    recorded.store.write(Update(time={("nvidia-a100", key()): TIME}))
    recorded.collected(TEST).ends[NODE] = Ended("failed")
    (recorded.options.baselines / "nvidia-a100" / "tests" / "test_copy.jsonl").unlink()
    recorded.store.forget()
    ((line,), _) = noted(recorded.with_options(archs=()))
    assert "record them: pytest --update-baselines=new, on a machine with such a GPU; or restore them from git" in line
