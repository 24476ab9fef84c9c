"""Kernels that a callable launches out of a library: judged by their code, named in the message, and never missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from git_samples import commit
from suite_under_test import CALLABLE, HOG, OTHER, RECORD, SIMULATED, Command, Suite, baselines_of

LIBRARY = f"""
from pytest_gpuperf.compile.compiler import compile_for
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.interface import Configuration

TEXTS = {{"hog": {HOG!r}, "other": {OTHER!r}}}
STEPS = [("hog", ""), ("other", "")]


def launcher(device, *args):
    loaded = []
    for name, option in STEPS:
        source = KernelSource(text=TEXTS[name], name=name, options=(option,) if option else ())
        loaded.append(device.load(compile_for(source, ["sm_90"])["sm_90"]))
    return lambda: [kernel(Configuration((8, 1, 1), (256, 1, 1)), args) for kernel in loaded]
"""
TEST = """
from library import launcher
from pytest_gpuperf.stash import run_of

def test_it(gpu, gpuperf, request):
    a = gpu.random(4096, seed=1)
    result = gpuperf(launcher(run_of(request.config).device, a, a, 4096), name="both", tolerance=None)
    print([(one.name, one.block, one.launches, one.stack_bytes, bool(one.time_ns)) for one in result.kernels])
"""
OPTIONS = SIMULATED.replace('"work": work, "other": work', "")
FILES = {"library.py": LIBRARY, "test_suite.py": TEST, "conftest.py": OPTIONS, ".gitignore": "__pycache__\n.gpuperf\n"}
SPILLS = ('("hog", "")', '("hog", "-maxrregcount=24")')
CI = ("--gpuperf", "--gpuperf-open=fail", "-rA")


@pytest.fixture
def recorded(suite: Suite, shared_folder: Path) -> Suite:
    """A callable of two kernels with its records, in a repository."""
    baselines = baselines_of(shared_folder / "captured", FILES, *RECORD, committed=True)
    for name in ("work.cu", "other.cu"):
        (suite.path / name).unlink()
    shutil.copytree(baselines.parent, suite.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("done"))
    commit(suite.path, "Baselines")
    return suite


def lines(suite: Suite, target: str = "sm_90") -> list[dict[str, object]]:
    text = (suite.path / "baselines" / target / "test_suite.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()[1:] if line]


def test_kernels_are_listed_recorded_and_unchanged(recorded: Suite, command: Command) -> None:
    static = {one["workload"]: one["record"] for one in lines(recorded)}
    assert list(static) == ["both: hog", "both: other"]
    assert all(record["captured"] and record["block"] == [256, 1, 1] for record in static.values())  # type: ignore[index]
    (time,) = lines(recorded, "simulated-gpu")
    assert time["record"]["kernel_breakdown"].keys() == {"hog", "other"}  # type: ignore[index]
    result = recorded.run(*CI)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*('hog', (256, 1, 1), 1, 0, True), ('other', (256, 1, 1), 1, 0, True)*"])
    assert "3 workloads: 3 UNCHANGED" in result.stdout.str()
    recorded.run("--update-baselines=all", "--gpuperf-disturbed")
    assert {one["workload"]: one["record"] for one in lines(recorded)} == static
    assert command("baselines", "mv", "test_suite.py::test_it [both]", "test_suite.py::test_it [two]")[0] == 0
    assert [one["workload"] for one in lines(recorded)] == ["two: hog", "two: other"]


def test_slower_callable_names_the_kernel_that_spills(recorded: Suite) -> None:
    recorded.edit("library.py", *SPILLS)
    result = recorded.run("--gpuperf")
    assert result.ret == 1
    result.stdout.re_match_lines([
        r"both  SLOWER  on simulated-gpu ", r" +1 of 2 kernels unchanged; hog x1\.\d+, stack frame 0 -> \d+ bytes, .*"
    ])  # fmt: skip
    result.stdout.fnmatch_lines(["both: hog  WORSE  on sm_90 (static)", "*cause: register spilling *"])


def test_worse_kernel_of_a_callable_that_is_not_slower_is_a_note(recorded: Suite) -> None:
    recorded.edit("library.py", *SPILLS)
    recorded.edit("test_suite.py", "tolerance=None", "tolerance=0.5")
    result = recorded.run(*CI)
    assert result.ret == 0, result.stdout.str()
    (hog,) = [one for one in recorded.judgements() if one["key"]["workload"] == "both: hog"]
    assert hog["verdict"] == "SAME"
    assert hog["reason"].startswith("worse, not slower: ")


@pytest.mark.parametrize("against", [(), ("--gpuperf-against=HEAD",)], ids=["baselines", "revision"])
def test_other_kernels_are_reported_and_never_red(recorded: Suite, against: tuple[str, ...]) -> None:
    recorded.edit(
        "library.py",
        '("other", "")]',
        '("another", "")]\nTEXTS["another"] = TEXTS["other"].replace("other", "another")',
    )
    result = recorded.run(*CI, *against)
    assert result.ret == 0, result.stdout.str()
    (time,) = [one for one in recorded.judgements() if one["kind"] == "time"]
    notes = " ".join(time["notes"])
    assert "new in this callable: another 2" in notes
    assert "no longer launched: other 2" in notes
    assert ("the machine code of 1 kernel has no record" in notes) == (not against)
    recorded.run("--update-baselines=all", "--gpuperf-disturbed")
    assert [one["workload"] for one in lines(recorded)] == ["both: another", "both: hog"]


def test_records_of_kernels_are_no_duty_without_a_gpu(recorded: Suite) -> None:
    recorded.write("conftest.py", "")
    result = recorded.run("--gpuperf", "--gpuperf-open=fail")
    assert "NOT-MEASURED" not in result.stdout.str()
    recorded.write("conftest.py", OPTIONS)
    shutil.rmtree(recorded.path / "baselines" / "sm_90")
    recorded.edit("baselines/manifest.json", '"sm_90"', "")
    result = recorded.run(*CI)
    assert result.ret == 0, result.stdout.str()
    recorded.run("--update-baselines=new", "--gpuperf-disturbed")
    assert [one["workload"] for one in lines(recorded)] == ["both: hog", "both: other"]


def test_kernel_that_the_test_compiled_has_one_record(gpu_suite: Suite) -> None:
    """Its own; and the time of the callable that launches it is its time."""
    gpu_suite.write("test_suite.py", CALLABLE.format(steps="(100, 200)", more=""))
    gpu_suite.run(*RECORD)
    assert [one["workload"] for one in lines(gpu_suite)] == ["work [-DSTEPS=100]", "work [-DSTEPS=200]"]
    assert gpu_suite.run("--gpuperf").ret == 0
