"""``--update-baselines``: what it takes, what it leaves alone, what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from evidence_tree import read_evidence
from suite_under_test import FILES, TEST, Suite, with_baselines

from pytest_gpuperf.baselines.store import BaselineStore

ARCH = "--gpuperf-arch=sm_90"
UP_TO_DATE = "0 baselines written: all are up to date"


def static_records(suite):
    """By test, of the one compiler."""
    (records,) = read_evidence(suite.path / "baselines/sm_90/test_suite.jsonl")["toolchains"].values()
    return records


def timed(suite):
    return read_evidence(suite.times)


def cubins(suite):
    return sorted((suite.path / "baselines/cubins").rglob("*.z"))


# --- without a GPU -------------------------------------------------------------------------------


def test_static_evidence_is_recorded_without_a_gpu(suite):
    result = suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90")
    assert result.ret == 0
    assert set(suite.baseline_files()) == {"manifest.json", "sm_80/test_suite.jsonl", "sm_90/test_suite.jsonl"}
    result.stdout.fnmatch_lines(["6 baselines written"])
    result.stdout.no_fnmatch_line("*no baseline*")
    first = suite.baseline_files()
    assert suite.run("--gpuperf").ret == 0
    suite.run("--update-baselines=all", "--gpuperf-arch=sm_80,sm_90").stdout.fnmatch_lines([UP_TO_DATE])
    assert suite.baseline_files() == first


NOTHING_WRITTEN = [
    # flags, and then: the exit status, and why nothing was written
    (["--update-baselines=new"], 0, "all are up to date"),
    (["--update-baselines"], 0, "all are up to date"),
    (["--update-baselines", "nowhere.py"], 4, "no test ran"),
    (["--update-baselines", "new"], 4, "no test ran (the mode is written --update-baselines=new)"),
]


def test_update_that_writes_nothing_says_why(suite):
    suite.run("--update-baselines", ARCH, "-k", "work")
    before = suite.baseline_files()
    for flags, status, why in NOTHING_WRITTEN:
        result = suite.run(*flags, "-k", "work")
        assert result.ret == status
        result.stdout.fnmatch_lines([f"0 baselines written: {why}"])
        assert suite.baseline_files() == before
    suite.edit("test_suite.py", "assert result.time_ns > 0", "assert size == 1024")
    failed = suite.run("--update-baselines", "-k", "work")
    assert failed.ret == 1
    failed.stdout.fnmatch_lines([f"{UP_TO_DATE}; failed tests record nothing"])
    assert suite.baseline_files() == before
    suite.write("baselines/sm_90/test_suite.jsonl", "{")
    broken = suite.run("--update-baselines=all")
    assert broken.ret == 1
    broken.stdout.fnmatch_lines(["0 baselines written: every test with a workload failed"])


def test_update_rewrites_and_shows_only_what_changed(suite):
    suite.run("--update-baselines", ARCH)
    before = static_records(suite)
    suite.edit("other.cu", "a[i] * 2.0f", "a[i] / 3.0f")
    suite.edit("work.cu", "// Copies", "// Now copies")
    kept = suite.run("--update-baselines", ARCH)  # it passes: nothing that gates got worse
    kept.stdout.fnmatch_lines(["0 baselines written: no change is proven; *"])
    suite.edit("other.cu", "a[i] / 3.0f", "a[i] / 3.0")
    suite.edit("test_suite.py", "grid=2, block=256", "grid=4, block=128")
    suite.run("--update-baselines=all", ARCH).stdout.re_match_lines([
        r"baseline +target +before +after +change",
        r"  doubling +sm_90 .* block 256x1x1 -> 128x1x1, .*instructions: fp64 0 -> \d+, .*and \d+ more$",
    ])  # fmt: skip
    after = static_records(suite)
    assert {test for test in after if after[test] != before[test]} == {"test_other"}


def test_an_update_of_everything_removes_the_records_of_deleted_tests(suite):
    """Of a full run alone; machine code goes with its last record."""
    suite.run("--update-baselines", ARCH)
    before = len(cubins(suite))
    suite.edit("test_suite.py", "def test_other(", "def not_a_test(")
    for narrowed in (["--update-baselines=all", "-k", "1024"], ["--update-baselines=changed"]):
        suite.run(*narrowed, ARCH)
        assert "test_other" in static_records(suite)
    result = suite.run("--update-baselines=all", ARCH)
    result.stdout.fnmatch_lines(["*removed the records of 1 workload missing now: *test_other*"])
    assert "test_other" not in static_records(suite)
    assert len(cubins(suite)) < before
    suite.write("test_broken.py", "import no_such_module")
    suite.edit("test_suite.py", "def test_work(", "def not_one_either(")
    suite.run("--update-baselines=all", ARCH)
    assert "test_work" in str(static_records(suite)), "a file that was not collected may have it"


def test_lost_machine_code_is_put_back(suite):
    """By an update of all; a changed launch is recorded without it too."""
    suite.run("--update-baselines", ARCH)
    before = [path.read_bytes() for path in cubins(suite)]
    first, *others = cubins(suite)
    first.unlink()
    for path in others:
        path.write_bytes(b"x")
    suite.run("--update-baselines=all").stdout.fnmatch_lines(["3 baselines written"])
    assert [path.read_bytes() for path in cubins(suite)] == before
    suite.run("--update-baselines=all").stdout.fnmatch_lines([UP_TO_DATE])
    shutil.rmtree(suite.path / "baselines/cubins")
    suite.edit("test_suite.py", "grid=2, block=256", "grid=4, block=128")
    result = suite.run("--update-baselines=all", "test_suite.py::test_other")
    result.stdout.fnmatch_lines(["1 baseline written"])
    assert result.ret == 0


def test_update_is_refused_under_ci(suite, monkeypatch):
    monkeypatch.setenv("CI", "1")
    result = suite.run("--update-baselines")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--update-baselines: refused because CI is set*--gpuperf-allow-ci-update*"])
    assert suite.baseline_files() == {}
    assert suite.run("--update-baselines", "--gpuperf-allow-ci-update").ret == 0
    assert suite.baseline_files()


# --- on a GPU ------------------------------------------------------------------------------------

WRONG = ("conftest.py", '"other": work', '"other": lambda a, b, n: None')
EXPECTED = ("test_suite.py", "assert result.time_ns > 0", "pytest.xfail('slow') if size == 2048 else None")
MORE = """
@pytest.mark.xfail(reason="wrong, and known")
def test_known(cuda_kernel, gpu, gpuperf):
    test_other(cuda_kernel, gpu, gpuperf)

def test_behind(cuda_kernel, gpu, gpuperf):
    launch = cuda_kernel("work.cu", "work", options=["-DSTEPS=9"]).launch(1, 32, (gpu.zeros(32), gpu.empty(32), 32))
    assert gpuperf(launch).time_ns < 0
"""


def test_update_takes_no_failed_test(gpu_suite):
    """A failed check, a failure behind the workload, and failures that are expected."""
    gpu_suite.edit(*WRONG)
    gpu_suite.edit(*EXPECTED)
    gpu_suite.write("test_suite.py", (gpu_suite.path / "test_suite.py").read_text() + MORE)
    gpu_suite.run("--gpuperf").assert_outcomes(passed=1, failed=2, xfailed=2)
    assert gpu_suite.baseline_files() == {}, "nothing but an update writes"
    gpu_suite.run("--update-baselines", "--gpuperf-disturbed")
    assert set(static_records(gpu_suite)) == {"test_work[1024]"}
    assert set(timed(gpu_suite)["tests"]) == {"test_work[1024]"}


def test_record_has_the_rounds_of_its_run_and_the_machine_code(recorded):
    """Recording all again replaces them."""
    first = recorded.baseline_files()
    file = timed(recorded)
    record = file["tests"]["test_other"]["doubling"]
    assert len(record["rounds"]) == 4
    session = record["session"]["id"]
    assert BaselineStore(recorded.path / "baselines").cubin(record["cubin"]).startswith(b"\x7fELF")
    recorded.run("--update-baselines").assert_outcomes(passed=3)
    assert recorded.baseline_files() == first
    recorded.run("--update-baselines=all", "--gpuperf-disturbed", "-k", "other")
    file = timed(recorded)
    assert session != file["tests"]["test_other"]["doubling"]["session"]["id"]
    assert (session, 4) == ((other := file["tests"]["test_work[1024]"]["work"])["session"]["id"], len(other["rounds"]))


def test_disturbed_measurement_is_refused_unless_forced(gpu_suite):
    gpu_suite.edit(
        "conftest.py",
        "return SimulatedGpu(",
        "from pytest_gpuperf.model.device_facts import DeviceState\n    "
        "return SimulatedGpu(state=DeviceState(throttle_reasons=('power cap',)), ",
    )
    flags = ("--update-baselines", "-k", "other")
    result = gpu_suite.run(*flags)
    result.stdout.fnmatch_lines(["*refused*throttled*power cap*"])
    assert result.ret == 1
    assert "simulated-gpu/test_suite.jsonl" not in gpu_suite.baseline_files()
    assert gpu_suite.run(*flags, "--gpuperf-disturbed").ret == 0
    assert "simulated-gpu/test_suite.jsonl" in gpu_suite.baseline_files()


# --- small steps add up until one is red; what is accepted is the baseline ------------------------

STEPS, INSTRUCTION_NS, MOST_STEPS = 1000, 40.0, 3
QUICK = ("--gpuperf-disturbed", "-k", "1024")


def commit(suite: Suite, number: int, percent: float = 0.8) -> None:
    """Make ``work`` slower by so many percent ``number`` times over: its time grows with its instructions."""
    before_ns = 2000.0 + INSTRUCTION_NS * (STEPS + 20)
    more = round(before_ns * ((1 + percent / 100) ** number - 1) / INSTRUCTION_NS)
    suite.write("test_suite.py", TEST.replace("-DSTEPS=100", f"-DSTEPS={STEPS + more}"))


@pytest.fixture
def frog(gpu_suite: Suite, shared_folder: Path) -> Suite:
    """``work``, on record as it was before the first commit."""
    commit(gpu_suite, 0)
    files = {**FILES, "test_suite.py": (gpu_suite.path / "test_suite.py").read_text()}
    return with_baselines(gpu_suite, shared_folder / "frog", files, "--update-baselines", *QUICK)


def identity(suite: Suite) -> dict:
    return timed(suite)["tests"]["test_work[1024]"]["work"]["identity"]


def test_updates_that_pass_keep_the_record_and_a_later_step_is_red(frog: Suite) -> None:
    before = identity(frog)
    for number in range(1, MOST_STEPS + 1):
        commit(frog, number)
        gated = frog.run("--gpuperf", "-k", "1024")
        if gated.ret:
            break
        frog.run("--update-baselines", *QUICK).stdout.re_match_lines(
            [r"  work .* SAME$", "0 baselines written: no change is proven; to record a test anyway, run this .*"]
        )
        assert identity(frog) == before
    assert number > 1
    assert "  SLOWER  " in gated.stdout.str()


def test_test_that_is_named_is_recorded_though_it_passed(frog: Suite) -> None:
    commit(frog, 1)
    before = identity(frog)
    frog.run("--update-baselines=all", *QUICK, "test_suite.py::test_work").stdout.fnmatch_lines(["2 baselines written"])
    assert identity(frog) != before


def test_accepted_loss_is_the_baseline_of_the_next_gate(frog: Suite) -> None:
    """A default update takes a kernel that got 2.5 % slower, and shows it; unchanged code is green from then on."""
    commit(frog, 1, percent=2.5)
    before = identity(frog)
    red = frog.run("--gpuperf", "-k", "1024")
    assert red.ret == 1
    assert "If this change is intended: pytest --update-baselines, and commit what it writes." in red.stdout.str()
    accepted = frog.run("--update-baselines", *QUICK)
    assert accepted.ret == 0
    accepted.stdout.re_match_lines([r"  work +simulated-gpu +\S+ us +\S+ us +\+2\.\d %"])
    assert identity(frog) != before
    for flags in ((), ("--gpuperf-time=all",)):
        gated = frog.run("--gpuperf", "-k", "1024", *flags)
        assert gated.ret == 0
        assert "slower" not in gated.stdout.str().lower()
