"""What a run without a GPU says of a launch that is not the one that its time on record is of."""

from __future__ import annotations

import pytest
from suite_under_test import SIMULATED, Suite

ARGUMENT = "the workload changed: argument 3 was int32=1024 and is int32=512: record the baseline anew with"
LAUNCHES = "the launch changed from grid=(8, 1, 1) block=(256, 1, 1) shared=0 to "


@pytest.fixture
def without_gpu(recorded: Suite) -> Suite:
    """With times on record of a GPU that this machine lacks."""
    recorded.write("conftest.py", "")
    return recorded


def changed(suite: Suite, old: str, new: str, *flags: str) -> pytest.RunResult:
    suite.edit("test_suite.py", old, new)
    return suite.run("--gpuperf", "-k", "1024", *flags)


def test_the_launch_on_record_is_unchanged(without_gpu: Suite) -> None:
    result = without_gpu.run("--gpuperf")
    assert result.stdout.lines[-2] == "3 workloads: 3 UNCHANGED"
    assert "the launch changed" not in result.stdout.str()


def test_other_arguments_are_not_comparable(without_gpu: Suite) -> None:
    result = changed(without_gpu, "args=(a, b, size)", "args=(a, b, size // 2)")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*: work  NOT-COMPARABLE  on sm_90 (static)", f"    {ARGUMENT}*, on a GPU"])


ON_ONE = (
    "no change is proven here; to record a test all the same, name it on a machine with a GPU: "
    "pytest --update-baselines NODEID"
)


@pytest.mark.parametrize(("mode", "why"), [("", ON_ONE), ("=all", ON_ONE), ("=new", "all are up to date")])
def test_an_update_without_a_gpu_says_how_other_arguments_are_recorded(without_gpu: Suite, mode: str, why: str) -> None:
    without_gpu.edit("test_suite.py", "args=(a, b, size)", "args=(a, b, size // 2)")
    result = without_gpu.run(f"--update-baselines{mode}", "-k", "1024 or other")
    result.stdout.fnmatch_lines([f"0 baselines written: {why}"])


def test_other_arguments_that_are_as_fast_are_recorded_as_the_message_says(without_gpu: Suite) -> None:
    result = changed(without_gpu, "args=(a, b, size)", "args=(a, b, size // 2)")
    remedy = "pytest --update-baselines NODEID if that is intended, on a GPU"
    assert remedy in result.stdout.str()
    without_gpu.write("conftest.py", SIMULATED)
    few = ("--gpuperf-disturbed",)
    assert without_gpu.run("--update-baselines", "test_suite.py::test_work[1024]", *few).ret == 0
    without_gpu.write("conftest.py", "")
    assert without_gpu.run("--gpuperf", "-k", "1024").stdout.lines[-2] == "1 workload: 1 UNCHANGED"


def test_other_arguments_fail_under_ci(without_gpu: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    result = changed(without_gpu, "args=(a, b, size)", "args=(a, b, size // 2)")
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"ERROR: no workload could be compared with its record: {ARGUMENT}*"])


def test_another_cache_state_is_not_comparable(without_gpu: Suite) -> None:
    result = changed(without_gpu, "bytes=2", 'cache="warm", bytes=2')
    result.stdout.fnmatch_lines(["*NOT-COMPARABLE*", "    the cache state changed from cold to warm: record *"])


def test_changed_code_of_other_work_is_not_comparable_either(without_gpu: Suite) -> None:
    without_gpu.change_code()
    result = changed(without_gpu, "args=(a, b, size)", "args=(a, b, size // 2)")
    result.stdout.fnmatch_lines(["*: work  NOT-COMPARABLE  on sm_90 (static)"])


@pytest.mark.parametrize(
    ("old", "new", "launch"),
    [
        ("grid=8", "grid=16", "grid=(16, 1, 1) block=(256, 1, 1) shared=0"),
        ("block=256", "block=128", "grid=(8, 1, 1) block=(128, 1, 1) shared=0"),
        ("block=256", "block=256, shared_bytes=64", "grid=(8, 1, 1) block=(256, 1, 1) shared=64"),
        ("block=256", "block=256, cooperative=True", "grid=(8, 1, 1) block=(256, 1, 1) shared=0 cooperative"),
        ("block=256", "block=256, cluster=2", "grid=(8, 1, 1) block=(256, 1, 1) shared=0 cluster=(2, 1, 1)"),
    ],
)
def test_another_launch_of_the_same_code_is_left_to_its_time_and_told(
    without_gpu: Suite, old: str, new: str, launch: str
) -> None:
    result = changed(without_gpu, old, new)
    assert result.ret == 0
    assert f"the machine code is that of the baseline; {LAUNCHES}{launch}: its time will tell" in result.stdout.str()
    assert result.stdout.lines[-2] == "1 workload: 1 SAME"


@pytest.mark.parametrize("asks", ["gpu.sm_count // 132", "1 + gpu.available"])
def test_work_that_a_test_fits_to_its_gpu_is_not_compared(without_gpu: Suite, asks: str) -> None:
    result = changed(without_gpu, "args=(a, b, size)", f"args=(a, b, 0 * ({asks}) + size // 2)")
    assert "NOT-COMPARABLE" not in result.stdout.str()
    assert "UNCHANGED" in result.stdout.str()


def test_what_a_test_asks_of_its_gpu_behind_a_launch_keeps_that_from_nothing(without_gpu: Suite) -> None:
    without_gpu.edit("test_suite.py", "    assert result", "    assert gpu.sm_count\n    assert result")
    result = changed(without_gpu, "args=(a, b, size)", "args=(a, b, size // 2)")
    result.stdout.fnmatch_lines(["*: work  NOT-COMPARABLE  on sm_90 (static)", f"    {ARGUMENT}*, on a GPU"])


@pytest.mark.parametrize("asks", ["gpu.warp_size", "gpu.max_threads_per_block", "gpu.max_grid[1]"])
def test_work_that_is_fitted_to_what_all_gpus_are_is_compared(without_gpu: Suite, asks: str) -> None:
    result = changed(without_gpu, "args=(a, b, size)", f"args=(a, b, 0 * {asks} + size // 2)")
    result.stdout.fnmatch_lines(["*: work  NOT-COMPARABLE  on sm_90 (static)", f"    {ARGUMENT}*, on a GPU"])


def test_what_another_test_asked_of_its_gpu_keeps_none_from_being_compared(without_gpu: Suite) -> None:
    text = (without_gpu.path / "test_suite.py").read_text()
    first = "def test_first(gpu):\n    assert gpu.sm_count\n\n"
    without_gpu.write("test_suite.py", text.replace("@pytest", f"{first}@pytest", 1))
    result = changed(without_gpu, "args=(a, b, size)", "args=(a, b, size // 2)", "-k", "first or 1024")
    assert "NOT-COMPARABLE" in result.stdout.str()


def test_what_another_test_asked_is_not_held_against_one_without_the_fixture(recorded: Suite) -> None:
    without = "def test_null(cuda_kernel, gpuperf):\n    kernel = cuda_kernel('other.cu', 'other')\n"
    launch = "    gpuperf(kernel.launch(grid=2, block=256, args=(None, None, {})))\n"
    asks = "def test_asks(gpu):\n    assert gpu.sm_count\n\n"
    recorded.edit("conftest.py", "    b[:] = a", "    pass")
    recorded.write("test_null.py", asks + without + launch.format(0))
    assert recorded.run("--update-baselines=new", "test_null.py").ret == 0
    recorded.write("conftest.py", "")
    recorded.write("test_null.py", asks + without + launch.format(1))
    assert "argument 3 was int32=0 and is int32=1" in recorded.run("--gpuperf", "test_null.py").stdout.str()


def test_the_time_of_one_gpu_on_record_will_do(without_gpu: Suite) -> None:
    folder = without_gpu.path / "baselines" / "another-gpu"
    folder.mkdir()
    text = (without_gpu.path / "baselines/simulated-gpu/test_suite.jsonl").read_text()
    other = text.replace("simulated-gpu", "another-gpu").replace("int32=1024", "int32=512")
    (folder / "test_suite.jsonl").write_text(other)
    assert "UNCHANGED" in changed(without_gpu, "args=(a, b, size)", "args=(a, b, size // 2)").stdout.str()


def test_a_launch_that_costs_occupancy_is_worse_and_not_its_machine_code(without_gpu: Suite) -> None:
    result = changed(without_gpu, "block=256", "block=256, shared_bytes=100_000", "--tb=no")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["    occupancy 100 -> 25 % *", "    the launch of the same machine code got worse: occupancy"]
    )


EARLY = ("    result = gpuperf(kernel", "    return\n    result = gpuperf(kernel")


def test_a_test_that_launches_nothing_any_more_is_named_and_does_not_fail(
    without_gpu: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    result = changed(without_gpu, *EARLY)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["    has a baseline and was not reached: the test passed without it. *"])


def test_a_test_that_launches_nothing_fails_where_what_is_missing_does(without_gpu: Suite) -> None:
    assert changed(without_gpu, *EARLY, "--gpuperf-open=fail").ret == 1


def test_a_test_that_asked_whether_there_is_a_gpu_need_not_launch_without_one(without_gpu: Suite) -> None:
    result = changed(without_gpu, EARLY[0], f"    if not gpu.available:\n        return\n{EARLY[0]}")
    assert "NOT-MEASURED" not in result.stdout.str()
