"""Changed workloads are decided by running the baseline's own machine code beside the candidate's."""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
import types
import zlib

import pytest
from evidence_tree import read_evidence, write_evidence
from suite_under_test import CONFIRMS, RECORD, REFUSING

from pytest_gpuperf.baselines.layout import cubin_path
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource

ONE = ("-k", "1024")
ON = r"on simulated-gpu \(time\)"
PAIRED = r"\(95 %, anytime\)  \S+ us -> \S+ us  tolerance 0.5 %  paired"
UNHEARD = "*suspected slower, and no second process could say: "


def slower(suite, steps=104):
    suite.edit("test_suite.py", "-DSTEPS=100", f"-DSTEPS={steps}")


def edit_baseline(suite, edit):
    """Let ``edit`` change the time baseline of test_work[1024], a dict, on disk."""
    path = suite.path / "baselines" / "simulated-gpu" / "test_suite.json"
    content = read_evidence(path)
    edit(content["tests"]["test_work[1024]"]["work"])
    write_evidence(path, content)


def stored_cubin(suite):
    content = read_evidence(suite.path / "baselines" / "simulated-gpu" / "test_suite.json")
    return cubin_path(suite.path / "baselines", content["tests"]["test_work[1024]"]["work"]["cubin"])


def store_cubin(suite, binary):
    """Let the record be of this kernel: its machine code and the hash of that."""
    cubin = binary.cubin
    sha256 = hashlib.sha256(cubin).hexdigest()
    path = cubin_path(suite.path / "baselines", sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zlib.compress(cubin))
    edit_baseline(suite, lambda record: record.update(cubin=sha256))
    edit_baseline(suite, lambda record: record["identity"].update(code=binary.profile.code_hash))


def test_a_suite_that_its_code_made_slower_is_no_shift_of_the_environment(recorded):
    """Two of three workloads are slower than their records, and their pairs say that it is the code."""
    slower(recorded, 120)
    result = recorded.run("--gpuperf")
    result.assert_outcomes(failed=2, passed=1)
    assert "environment shift" not in result.stdout.str()


@pytest.mark.parametrize("steps", [104, 120])
def test_a_slower_kernel_fails_after_two_processes_saw_it(recorded, steps):
    slower(recorded, steps)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            rf"work  SLOWER  {ON}  x1\.\d+ \[1.*\] {PAIRED}, \d+\+\d+ blocks, E=\S+ \(need 1.8e3\)",
            rf" +also: instructions 116 -> {16 + steps}, code size .*instructions: fp32 100 -> {steps}",
            r" +proven to be more than 0.5 % slower, in two processes; the source and its machine code changed",
        ],
        consecutive=True,
    )


def test_each_workload_and_each_process_tosses_a_coin_of_its_own(recorded):
    slower(recorded, 120)
    recorded.run("--gpuperf").assert_outcomes(failed=2, passed=1)
    tests = json.loads((recorded.path / ".gpuperf/last-run.json").read_text())["tests"]
    judgements = [one for test in tests for work in test["workloads"] for one in work["judgements"]]
    seeds = [one["time"]["seeds"] for one in judgements if one["verdict"] == "SLOWER"]
    assert [len(of_processes) for of_processes in seeds] == [2, 2]
    assert len({*seeds[0], *seeds[1]}) == 4


def test_other_code_of_the_same_speed_passes(recorded):
    recorded.change_code()
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  work .* x(1.00\d|0.99\d) \[.*\] +SAME"])


def test_with_a_machine_profile_the_screen_may_acquit_before_any_pair(screened, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(gate_time, "decide_by_pairs", None)
        screened.run("--gpuperf", *ONE).stdout.re_match_lines([r"  work .*SAME"])
    slower(screened)
    screened.run("--gpuperf", *ONE).assert_outcomes(failed=1)


def test_a_tolerance_of_the_test_s_own_holds_for_pairs_too(recorded):
    slower(recorded, 104)
    recorded.edit("test_suite.py", "@pytest.mark.param", "@pytest.mark.gpuperf(tolerance=0.04)\n@pytest.mark.param")
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  work .* x1.02\d \[.*\] +(SAME|NOT-SLOWER)"])


def launched_with(suite, blocks, block_ns):
    """Otherwise than on record, on a GPU where each block takes so long."""
    suite.edit("conftest.py", "SimulatedGpu(", f"SimulatedGpu(block_ns={block_ns}, ")
    suite.edit("test_suite.py", "grid=8", f"grid={blocks}")


def test_a_slower_launch_of_the_same_code_fails_after_two_processes_saw_it(recorded):
    launched_with(recorded, blocks=16, block_ns=50)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            rf"work  SLOWER  {ON}  x1\.\d+ \[1.*\] {PAIRED}, \d+\+\d+ blocks",
            r" +proven to be more than 0.5 % slower, in two processes; the machine code is that of the baseline; "
            r"the launch changed from grid=\(8, 1, 1\) .* to grid=\(16, 1, 1\)",
        ]
    )


def test_another_launch_of_the_same_speed_passes(recorded):
    launched_with(recorded, blocks=16, block_ns=0)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  work .* x(1.00\d|0.99\d) \[.*\] +SAME"])


def test_a_recorded_launch_that_no_gpu_takes_is_never_run(recorded):
    edit_baseline(recorded, lambda record: record.update(block=[2048, 1, 1]))
    slower(recorded, 120)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "work  SLOWER  *unpaired",
            "*not paired: the baseline cannot be launched as it was: *beyond the device*s limit of 1024*",
        ]
    )


def test_a_faster_kernel_is_faster_and_fails_when_strict(recorded):
    slower(recorded, 90)
    result = recorded.run("--gpuperf", "--gpuperf-strict", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([rf"work  FASTER  on simulated-gpu \(time\)  x0\.\d+ \[.*\] {PAIRED}, \d+ blocks$"])


@pytest.fixture
def placed(monkeypatch):
    """Modules of this process are always loaded in one order, so that a place in memory is one side's own."""
    monkeypatch.setattr(paired_run, "LOAD_ORDERS", ((0, 1),))


def test_slower_in_one_process_and_not_in_the_second_passes(recorded, placed):
    recorded.edit("conftest.py", "SimulatedGpu(", "SimulatedGpu(placement=0 if confirms(config) else -0.02, ")
    recorded.change_code()
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*INCONCLUSIVE*", "*in one process and not in a second: where it is placed decides*"])


# --- the second process goes wrong ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("import os; os._exit(3)", "the second process failed (pytest exit status 3)"),
        ("raise RuntimeError('no licence')", "the second process failed (pytest exit status 1): *no licence"),
        (
            "import shutil; shutil.rmtree(item.config.rootpath / 'baselines' / 'cubins')",
            "it could not pair the two: *the baseline's machine code is missing*",
        ),
        ("pytest.skip('not today')", "the second process did not come to this workload"),
        ("item.config.option.markexpr = None; pytest.exit('stop', 0)", "the second process did not come to"),
    ],
)
def test_a_second_process_that_could_not_speak_leaves_a_suspect(recorded, statement, words):
    slower(recorded)
    recorded.in_second_process(statement)
    result = recorded.run("--gpuperf", *ONE)
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SUSPECT  on *", f"{UNHEARD}{words.replace('(', '[(]')}*"])
    result.stdout.fnmatch_lines(["a second process has to be able to run the test by itself: *"])


def test_a_check_that_fails_in_the_second_process_is_told_with_its_output(recorded):
    slower(recorded)
    recorded.edit("test_suite.py", "check=lambda:", f"check=lambda: not {CONFIRMS} and")
    recorded.edit("test_suite.py", "gpuperf, size)", "gpuperf, size, request)")
    recorded.edit("test_suite.py", "gpu.assert_equal(b, a))\n    assert", "gpu.assert_equal(b, a) is None)\n    assert")
    result = recorded.run("--gpuperf", "--gpuperf-inconclusive=fail", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "work  SUSPECT  on simulated-gpu *",
            f"{UNHEARD}the second process failed [(]pytest exit status 1[)]: *the check of*",
            "*gpuperf confirmation*",
        ]
    )


def test_a_second_process_that_never_ends_is_ended(recorded, monkeypatch):
    from pytest_gpuperf.workload import second_process

    monkeypatch.setattr(second_process, "time_limit_s", lambda suspects, workloads: 3.0)
    monkeypatch.setattr(second_process, "LIMIT_FACTOR", 0.0)
    slower(recorded)
    recorded.edit("test_suite.py", "gpuperf, size)", "gpuperf, size, request)")
    recorded.edit(
        "test_suite.py",
        "check=lambda:",
        f"check=lambda: {CONFIRMS} and __import__('time').sleep(600) or",
    )
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"{UNHEARD}the second process was not done after 3 s*"])


def test_a_second_process_that_runs_other_code_confirms_nothing(recorded):
    recorded.edit("test_suite.py", '["-DSTEPS=100"]', f"['-DSTEPS=' + ('130' if {CONFIRMS} else '120')]")
    recorded.edit("test_suite.py", "gpuperf, size)", "gpuperf, size, request)")
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"{UNHEARD}it ran other code or other arguments*"])


def test_what_a_test_does_after_its_last_suspect_is_not_done_again(recorded):
    slower(recorded)
    recorded.edit(
        "test_suite.py",
        "    assert result.time_ns > 0",
        "    with open('after', 'a') as file:\n        file.write('x')",
    )
    recorded.run("--gpuperf", *ONE).assert_outcomes(failed=1)
    assert (recorded.path / "after").read_text() == "x"


def test_beyond_their_number_suspects_are_red_all_the_same(recorded):
    slower(recorded)
    result = recorded.run("--gpuperf", "--gpuperf-confirmations=1")
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(["work  SLOWER  on *"])
    result.stdout.fnmatch_lines(
        ["work  SUSPECT  on *", f"{UNHEARD}1 regression of this process was confirmed already*run this one by itself*"]
    )


def test_a_second_process_that_confirms_nothing_costs_no_confirmation(recorded):
    slower(recorded)
    recorded.in_second_process("'1024' in item.nodeid and __import__('os')._exit(3)")
    result = recorded.run("--gpuperf", "--gpuperf-confirmations=1")
    result.stdout.fnmatch_lines(["work  SUSPECT  on *", "work  SLOWER  on *"])


def test_without_any_confirmation_the_flag_is_named(recorded):
    slower(recorded)
    result = recorded.run("--gpuperf", "--gpuperf-confirmations=0", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"{UNHEARD}--gpuperf-confirmations=0 allows none; *"])


def test_an_ini_file_that_asks_for_the_gate_does_not_reach_the_second_process(recorded):
    recorded.pytester.makeini("[pytest]\ngpuperf = true\ngpuperf_changed = true\n")
    slower(recorded)
    recorded.run(*ONE).assert_outcomes(failed=1)


# --- when the baseline cannot be run again -------------------------------------------------------


def test_a_missing_cubin_leaves_the_record_and_says_so(recorded):
    stored_cubin(recorded).unlink()
    slower(recorded, 120)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "work  SLOWER  *unpaired",
            "*not paired: *the baseline's machine code is missing. Restore it from version control*",
        ]
    )


def test_without_a_cubin_that_is_on_record_nothing_passes(recorded):
    stored_cubin(recorded).unlink()
    recorded.change_code()
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*work  NOT-COMPARABLE*", "*the baseline's machine code is missing. Restore it *"])


def test_a_baseline_without_machine_code_leaves_the_record(recorded):
    edit_baseline(recorded, lambda record: record.update(cubin=""))
    slower(recorded, 120)
    result = recorded.run("--gpuperf", *ONE)
    result.stdout.fnmatch_lines(
        ["work  SLOWER  *unpaired", "*instructions 116 -> 136*", "*not paired: *recorded without its machine code"]
    )


def test_what_differs_is_left_out_where_nothing_is_left_of_the_baseline_s_code(recorded):
    edit_baseline(recorded, lambda record: record["identity"].update(toolchain="nvrtc 12.9.41"))
    stored_cubin(recorded).unlink()
    slower(recorded, 120)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER  *unpaired"])
    result.stdout.no_fnmatch_line("*instructions 116*")


def test_an_altered_cubin_is_never_run(recorded):
    path = stored_cubin(recorded)
    path.write_bytes(zlib.compress(lzma.decompress(path.read_bytes(), lzma.FORMAT_ALONE) + b"x"))
    recorded.change_code()
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["*work  NOT-COMPARABLE*", "*the machine code of the record of * is refused: *the content does not match the *"]
    )


def test_a_cubin_with_other_parameters_is_not_comparable_and_never_run(recorded):
    source = 'extern "C" __global__ void work(const float* a, float* b, long long n, int m) { b[n] = a[m]; }'
    store_cubin(recorded, compile_kernel(KernelSource(text=source, name="work"), "sm_90"))
    slower(recorded)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["*work  NOT-COMPARABLE*", "*the parameters changed from (8 bytes, 8 bytes, 8 bytes, 4 bytes) to (8 bytes, *"]
    )


@pytest.mark.parametrize(
    ("name", "arch", "words"),
    [("other", "sm_90", "it has no kernel work; it has other"), ("work", "sm_80", "for sm_80")],
)
def test_a_cubin_of_another_kernel_or_architecture_is_never_run(recorded, name, arch, words):
    source = f'extern "C" __global__ void {name}(const float* a, float* b, int n) {{ b[n] = a[n]; }}'
    store_cubin(recorded, compile_kernel(KernelSource(text=source, name=name), arch))
    slower(recorded, 120)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER  *unpaired", f"*not paired: *{words}*"])


def test_a_cubin_that_the_driver_refuses_leaves_the_record(recorded):
    slower(recorded, 120)
    recorded.edit("conftest.py", "def work(", f"{REFUSING}\n\ndef work(")
    recorded.edit("conftest.py", "return SimulatedGpu(", "return Refusing(")
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*, in two processes;*", "*not paired: the baseline's machine code cannot be loaded: no kernel image"]
    )


def test_blocks_are_not_confirmed_by_rounds_where_the_driver_refuses_the_cubin_in_the_second_process(recorded):
    slower(recorded)
    recorded.edit("conftest.py", "def work(", f"{REFUSING}\n\ndef work(")
    refusing = "return (Refusing if confirms(config) else SimulatedGpu)("
    recorded.edit("conftest.py", "return SimulatedGpu(", refusing)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [f"{UNHEARD}it could not pair the two: the baseline's machine code cannot be loaded: no *"]
    )


# --- the machine ---------------------------------------------------------------------------------


def test_on_another_gpu_a_slower_kernel_is_slower_too(recorded):
    recorded.edit("conftest.py", "SimulatedGpu(", "SimulatedGpu(uuid='GPU-2', ")
    slower(recorded)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER *paired,*", "*the baseline was recorded on another GPU of this model*"])


def test_a_slower_machine_is_not_a_slower_kernel(recorded):
    recorded.edit("conftest.py", "SimulatedGpu(", "SimulatedGpu(slowdown=1.03, ")
    recorded.change_code()
    result = recorded.run("--gpuperf")
    result.assert_outcomes(passed=3)
    result.stdout.re_match_lines(
        [
            r".*work  ENV-SHIFT  on simulated-gpu \(time\)  x(1.00|0.99).*paired",
            r" +\+(2|3)\.\d % against the record and proven to be less than 1 % slower.* when paired: clocks,",
            r"environment shift: half of the 3 workloads moved by \+(2|3)\.\d % or more",
        ]
    )


def test_a_slower_compiler_is_blamed_by_name(recorded):
    slower(recorded, 120)
    text = (recorded.path / "work.cu").read_text()
    source = KernelSource(text=text, name="work", path=recorded.path / "work.cu", options=("-DSTEPS=120",))
    same = {"source": compile_kernel(source, "sm_90").source_hash, "toolchain": "nvrtc 12.9.41"}
    edit_baseline(recorded, lambda record: record["identity"].update(same))
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "work  SLOWER *paired,*",
            "*also: instructions 116 -> 136,*",
            "*the source is that of the baseline; the compiler changed from nvrtc 12.9.41 to nvrtc 13*",
        ]
    )


# --- the run as a whole --------------------------------------------------------------------------


def test_unchanged_workloads_are_paired_when_all_are_asked_for(recorded):
    result = recorded.run("--gpuperf", "--gpuperf-all")
    result.assert_outcomes(passed=3)
    result.stdout.re_match_lines([r"  doubling .*SAME"])
    assert "UNCHANGED" not in result.stdout.str().partition("device time")[2]


def test_all_and_changed_exclude_each_other(recorded):
    result = recorded.run("--gpuperf", "--gpuperf-all", "--gpuperf-changed")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--gpuperf-all and --gpuperf-changed exclude each other*"])


def test_workers_share_the_error_rate(recorded):
    slower(recorded)
    result = recorded.run("--gpuperf", "-n", "2", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*SLOWER*E=* (need 3.7e3)"])


def test_later_workloads_need_more_evidence(recorded):
    slower(recorded)
    result = recorded.run("--gpuperf")
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(["work  SLOWER *(need 1.8e3)", "work  SLOWER *(need 7.0e3)"])


def test_a_launch_that_differs_from_itself_voids_the_run(recorded, placed):
    recorded.edit("conftest.py", "SimulatedGpu(", "SimulatedGpu(placement=-0.02, ")
    result = recorded.run("--gpuperf", *ONE)
    assert result.ret == 12
    result.stdout.re_match_lines(
        [
            r"ERROR: a launch paired with itself came out different: test_suite.py::test_work\[1024\] \[work\] "
            r"x1.0(19|2\d) after .*"
        ]
    )


def test_red_times_of_a_void_run_do_not_set_its_exit_status_and_other_failures_do(recorded, placed):
    recorded.edit("conftest.py", "SimulatedGpu(", "SimulatedGpu(placement=-0.02, ")
    slower(recorded, 120)  # by more than a placement costs, which falls to either side in the second process
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    assert result.ret == 12
    recorded.edit("test_suite.py", "    assert result.time_ns > 0", "    assert result.time_ns < 0")
    assert recorded.run("--gpuperf", *ONE).ret == 1


def test_a_sound_machine_rings_no_alarm(recorded):
    result = recorded.run("--gpuperf")
    assert result.ret == 0
    assert "paired with itself" not in result.stdout.str()


# --- other measurements --------------------------------------------------------------------------


def test_a_baseline_of_another_timer_is_paired_all_the_same(recorded):
    edit_baseline(recorded, lambda record: record.update(timer="cupti"))
    recorded.run("--gpuperf", *ONE).stdout.re_match_lines([r"  work .*UNCHANGED"])
    slower(recorded)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER *paired,*", "*the timer changed from cupti to graph*"])


def test_an_update_takes_what_the_gate_has_proven(recorded):
    slower(recorded)
    result = recorded.run("--gpuperf", "--update-baselines", "--gpuperf-processes=1", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*work  SLOWER *paired, *+* blocks*", "2 baselines written"])


def test_a_skip_behind_a_workload_hides_no_regression(recorded):
    slower(recorded)
    recorded.edit("test_suite.py", "    assert result.time_ns > 0", "    pytest.skip('not here')")
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER  on *", "*, in two processes; *"])


def test_a_test_that_fails_by_itself_is_confirmed_by_no_second_process(recorded):
    slower(recorded)
    recorded.edit("test_suite.py", "    assert result.time_ns > 0", "    pytest.fail('not so')")
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SUSPECT  on *", f"{UNHEARD}the test was failed or stopped by pytest's own*"])


def test_a_suite_that_cannot_be_decided_blames_the_machine(recorded, monkeypatch):
    few = functools.partial(Policy, blocks_max=6)  # not even unanimous ones prove anything to 1 in 200
    monkeypatch.setattr("pytest_gpuperf.workload.gate_time.Policy", few)
    result = recorded.run("--gpuperf", "--gpuperf-all")
    result.stdout.fnmatch_lines(["3 of 3 workloads were undecided: the machine is the finding, not the code.*"])


def test_the_second_process_has_time_for_the_budgets_of_its_workloads() -> None:
    from pytest_gpuperf.timing.pending_confirmations import PairedPending, UnpairedPending

    from pytest_gpuperf.workload import second_process

    kernel, work = (types.SimpleNamespace(identity=types.SimpleNamespace(code=code)) for code in ("3fa9", ""))
    suspects = [
        PairedPending(case=kernel, policy=None, pairing=None, judgement=None, budget_s=5),
        UnpairedPending(case=kernel, policy=None, judgement=None, budget_s=300),
    ]
    assert second_process.time_limit_s(suspects, 2) == second_process.TIMEOUT_S + 305
    assert second_process.time_limit_s(suspects, 4) == second_process.TIMEOUT_S + 305 + 2 * 300
    undecided = PairedPending(case=work, policy=None, pairing=None, judgement=None, budget_s=300)
    assert second_process.time_limit_s([undecided], 1) == second_process.TIMEOUT_S + 4 * 300


IN_A_SUBTEST = """
def test_work(cuda_kernel, gpu, gpuperf, subtests):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=100"])
    a, b = gpu.random(1024, seed=1), gpu.empty(1024)
    with subtests.test("one"):
        gpuperf(kernel.launch(grid=8, block=256, args=(a, b, 1024)))
    with subtests.test("two"):
        pass
"""


@pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="subtests are new in pytest 9")
def test_a_suspect_of_a_subtest_is_confirmed_at_the_end_of_its_test(gpu_suite):
    gpu_suite.write("test_suite.py", IN_A_SUBTEST)
    gpu_suite.run(*RECORD)
    slower(gpu_suite)
    result = gpu_suite.run("--gpuperf", "--junitxml=junit.xml")
    assert result.ret == 1
    result.stdout.re_match_lines([rf"work  SLOWER  {ON}", r" +proven to be more than 0.5 % slower, in two processes.*"])


@pytest.mark.parametrize(("marker", "steps", "said"), [("tolerance=0.5", 160, "100"), ("profile='loose'", 104, "5")])
def test_what_passes_by_a_wider_tolerance_of_its_own_is_named(recorded, marker, steps, said):
    """Whoever makes a kernel slower may widen its tolerance in the same change."""
    slower(recorded, steps)
    recorded.edit("test_suite.py", "def test_work", f"@pytest.mark.gpuperf({marker})\ndef test_work")
    result = recorded.run("--gpuperf", *ONE)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["1 workload is slower by more than the 0.5 % of the profile tight, and within a wider tolerance: "
         f"test_suite.py::test_work[[]1024] [[]work] x1.* (within {said} %)"]
    )  # fmt: skip


def test_what_passes_by_a_wider_tolerance_of_the_whole_run_is_named(recorded):
    """A change may widen the ini file's tolerance along with a kernel's time."""
    slower(recorded, 160)
    recorded.pytester.makeini("[pytest]\ngpuperf_tolerance = 0.5\n")
    result = recorded.run("--gpuperf", *ONE)
    assert result.ret == 0
    by_profile = "1 workload is slower by more than the 0.5 % of the profile tight, and within a wider tolerance"
    result.stdout.fnmatch_lines([f"{by_profile}: *x1.* (within 100 %)"])


def test_a_wider_tolerance_that_nothing_needs_is_not_spoken_of(recorded):
    recorded.change_code()
    recorded.edit("test_suite.py", "def test_work", "@pytest.mark.gpuperf(tolerance=0.5)\ndef test_work")
    assert "tolerance of" not in recorded.run("--gpuperf", *ONE).stdout.str()
