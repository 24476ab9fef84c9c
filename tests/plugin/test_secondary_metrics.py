"""Secondary metrics: memory, time of the host, and the error of a result, each gated."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from evidence_tree import read_evidence
from git_samples import commit
from suite_under_test import KERNEL, RECORD, SIMULATED, Suite, run_bodies, with_baselines

CONFTEST = (
    SIMULATED.replace("from simulated_gpu import SimulatedGpu,", "from simulated_gpu import").replace(
        'return SimulatedGpu(implementations={"work": work, "other": work})',
        "from pathlib import Path\n    from simulated_gpu import LimitedGpu\n"
        '    return LimitedGpu(Path(__file__).parent / "memory", 1 << 30, implementations={"work": work}, '
        "process_sd=0.0, sample_sd=0.0001)",
    )
    + """
@pytest.fixture(autouse=True)
def counted_time(monkeypatch):
    from simulated_gpu import HOST
    HOST.count(monkeypatch)
"""
)
SUITE = """
from simulated_gpu import HOST

def spin(times):
    HOST.work(20.0 * times)

def launch_of(cuda_kernel, gpu, size=1024):
    a = gpu.random(size, seed=1)
    b = gpu.zeros(size)
    return cuda_kernel("work.cu", "work").launch(grid=8, block=256, args=(a, b, size))

def test_memory(cuda_kernel, gpu, gpuperf):
    launch = launch_of(cuda_kernel, gpu)
    def work():
        scratch = gpu.zeros(100_000)
        launch()
        return scratch
    result = gpuperf(work, measure=("memory",))
    assert result.memory_bytes >= 400_000

def test_arrays(cuda_kernel, gpu, gpuperf):
    assert gpuperf(launch_of(cuda_kernel, gpu), measure=["memory"]).memory_bytes == 2 * 4 * 1024

def test_host(cuda_kernel, gpu, gpuperf):
    launch = launch_of(cuda_kernel, gpu)
    def work():
        spin(500)
        launch()
    assert gpuperf(work, measure=("host",)).host_ns > 1000

def test_accuracy(cuda_kernel, gpu, gpuperf):
    result = gpuperf(launch_of(cuda_kernel, gpu), accuracy=lambda: 1.25)
    assert result.error == 1.25
"""
FILES = {"work.cu": KERNEL.replace("STEPS", "1"), "test_suite.py": SUITE, "conftest.py": CONFTEST}
LAUNCH = """a = gpu.random(1024, seed=1)
launch = cuda_kernel("work.cu", "work").launch(grid=8, block=256, args=(a, a.copy(), 1024))
"""
RECORDED = "baselines/simulated-gpu/test_suite.jsonl"


@pytest.fixture
def measured(suite: Suite, shared_folder: Path) -> Suite:
    return with_baselines(suite, shared_folder / "secondary", FILES, *RECORD)


def on_record(suite: Suite, test: str) -> dict:
    return next(iter(read_evidence(suite.path / RECORDED)["tests"][test].values())).get("secondary", {})


def verdicts(suite: Suite, *arguments: str) -> dict[str, str]:
    """By test and kind of evidence, of all that was gated beside the time."""
    suite.run("--gpuperf", *arguments)
    judged = (one for one in suite.judgements() if one["kind"] not in ("static", "time"))
    return {f"{one['test']}.{one['kind']}": one["verdict"] for one in judged}


def edit(suite: Suite, *, zeros: int = 100_000, spin: str = "500", error: str = "1.25") -> None:
    """Let the tests need so much memory, time of the host and error."""
    suite.edit("test_suite.py", "gpu.zeros(100_000)", f"gpu.zeros({zeros})")
    suite.edit("test_suite.py", "spin(500)", f"spin({spin})")
    suite.edit("test_suite.py", "lambda: 1.25", f"lambda: {error}")
    suite.edit("test_suite.py", "result.error == 1.25", "True")


def test_more_is_worse_and_explained(measured, command):
    edit(measured, zeros=101_000, spin="900", error="1.5")
    result = measured.run("--gpuperf", "-k", "not arrays")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines([
        "work  WORSE  on simulated-gpu (memory)",
        "    device memory 400000 -> 404000 bytes (+1.0 %)",
        "If this change is intended: pytest --update-baselines, and commit what it writes.",
    ], consecutive=True)  # fmt: skip
    result.stdout.fnmatch_lines(
        ["work  WORSE  on simulated-gpu (host)", "    host time * us -> * us (+* %)"], consecutive=True
    )
    result.stdout.fnmatch_lines(["work  WORSE  on simulated-gpu (accuracy)"])
    status, said, _ = command("explain", "test_suite.py::test_memory")
    assert (status, "device memory 400000 -> 404000 bytes (+1.0 %)" in said) == (0, True)


def test_tolerance_is_that_of_the_test(measured):
    """Memory is exact by default; host time may differ by what processes differ by."""
    edit(measured, zeros=101_000, spin="640")
    measured.edit("test_suite.py", 'work, measure=("memory",)', 'work, measure={"memory": 0.02}')
    assert verdicts(measured, "-k", "memory or host") == {"test_memory.memory": "SAME", "test_host.host": "SAME"}
    measured.edit("test_suite.py", 'gpuperf(work, measure=("host",))', 'gpuperf(work, measure={"host": 0.1})')
    assert verdicts(measured, "-k", "host") == {"test_host.host": "WORSE"}


def test_host_time_that_is_worse_in_one_process_alone_is_open(measured):
    edit(measured, spin="500 if slow == 'no' else 900")
    measured.edit("test_suite.py", "def spin", "import os\nslow = os.environ.get('SLOW_HOST', 'no')\n\ndef spin")
    measured.append("conftest.py", (
        "\n\ndef pytest_configure(config):\n    import os\n"
        "    os.environ['SLOW_HOST'] = 'no' if confirms(config) else 'yes'\n"
    ))  # fmt: skip
    assert verdicts(measured, "-k", "host") == {"test_host.host": "INCONCLUSIVE"}


def test_error_that_is_no_number_fails_the_test(measured):
    bodies = [f"gpuperf(launch, accuracy=lambda: {error})" for error in ("float('nan')", "True")]
    result = run_bodies(measured, bodies, "--gpuperf", before=LAUNCH)
    result.assert_outcomes(failed=2)
    said = result.stdout.str().count("WrongResult: work: accuracy= returned ")
    assert said >= 2
    result.stdout.fnmatch_lines(["*, and not a finite number from 0 on*"])


def test_new_figure_is_recorded_beside_the_time(measured):
    measured.edit("test_suite.py", 'measure=["memory"]', 'measure=["memory", "host"]')
    before = on_record(measured, "test_arrays")
    rounds = read_evidence(measured.path / RECORDED)["tests"]["test_arrays"]
    assert verdicts(measured, "-k", "arrays") == {"test_arrays.memory": "SAME", "test_arrays.host": "NEW"}
    result = measured.run(*RECORD, "-k", "arrays")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["  *secondary metrics", "1 baseline written"])
    after = on_record(measured, "test_arrays")
    assert after["memory_bytes"] == before["memory_bytes"] == 8192
    assert len(after["host"]["ratios"]) == 1
    now = read_evidence(measured.path / RECORDED)["tests"]["test_arrays"]
    assert next(iter(now.values()))["rounds"] == next(iter(rounds.values()))["rounds"]
    judged = verdicts(measured, "-k", "arrays")
    assert judged["test_arrays.host"] in ("SAME", "INCONCLUSIVE")


def test_marker_asks_for_a_whole_test_and_is_checked_when_it_is_collected(measured):
    marked = 'import pytest\n\n@pytest.mark.gpuperf(measure=("memory",))\ndef test_accuracy('
    measured.edit("test_suite.py", "def test_accuracy(", marked)
    found = verdicts(measured, "-k", "accuracy")
    assert found == {"test_accuracy.accuracy": "SAME", "test_accuracy.memory": "NEW"}
    measured.edit("test_suite.py", 'gpuperf(measure=("memory",))', 'gpuperf(measure=("ram",))')
    result = measured.run("--gpuperf")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_accuracy*measure=('ram',) is not valid*"])


def test_plain_run_measures_nothing_and_reads_nothing(measured):
    measured.edit("test_suite.py", "lambda: 1.25", "lambda: 1 / 0")
    measured.run().assert_outcomes(passed=4)


def test_diff_tells_of_figures_beside_the_time(measured, command):
    commit(measured.path)
    path = measured.path / RECORDED
    path.write_text(path.read_text().replace('"memory_bytes":400000', '"memory_bytes":404000'))
    status, said, _ = command("diff", "HEAD")
    assert (status, "device memory 400000 bytes -> 404000 bytes" in said) == (0, True)


def test_against_a_revision_its_process_takes_the_figures(measured):
    shutil.rmtree(measured.path / "baselines")
    commit(measured.path)
    edit(measured, zeros=101_000, spin="900")
    found = verdicts(measured, "--gpuperf-against=HEAD", "-k", "memory or host or accuracy")
    assert found == {"test_memory.memory": "WORSE", "test_host.host": "WORSE", "test_accuracy.accuracy": "SAME"}
