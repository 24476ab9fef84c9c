"""The suite that plugin tests run: two real kernels, three tests, on a simulated GPU or on none."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from evidence_tree import read_evidence
from filelock import FileLock
from git_samples import commit

HERE = Path(__file__).parent

SIMULATED = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import pytest
from simulated_gpu import SimulatedGpu, confirms, task_of

def work(a, b, n):
    b[:] = a

@pytest.hookimpl(tryfirst=True)
def pytest_gpuperf_device(config, worker):
    return SimulatedGpu(implementations={{"work": work, "other": work}})
"""

REFUSING = """
class Refusing(SimulatedGpu):
    def load(self, binary):
        from pytest_gpuperf.device.device_errors import LoadError
        if __import__("simulated_gpu").instructions_of(binary) == 116:
            raise LoadError("no kernel image")
        return super().load(binary)
"""
"""A driver that refuses the machine code on record, which has 116 instructions."""

HOG = """
extern "C" __global__ void hog(const float* a, float* b)
{
    float arr[64];
#pragma unroll
    for (int k = 0; k < 64; ++k) arr[k] = a[threadIdx.x + 32 * k];
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < 64; ++k) s = s * 0.5f + arr[k];
    float r = s;
#pragma unroll
    for (int k = 63; k >= 0; --k) r = r * 0.25f + arr[k] * s;
    b[threadIdx.x] = r;
}
"""
"""Holds 64 values in registers; limited to fewer of them, it spills."""
KERNEL = """
// Copies, after STEPS rounds of arithmetic.
extern "C" __global__ void work(const float* a, float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = a[i];
#pragma unroll
        for (int k = 0; k < STEPS; ++k) x = x * 1.5f + a[i];
        b[i] = x;
    }
}
"""

OTHER = """
extern "C" __global__ void other(const float* a, float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i] * 2.0f;
}
"""

TEST = """
import pytest

@pytest.mark.parametrize("size", [1024, 2048])
def test_work(cuda_kernel, gpu, gpuperf, size):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=100"])
    a = gpu.random(size, seed=1)
    b = gpu.empty_like(a)
    result = gpuperf(kernel.launch(grid=8, block=256, args=(a, b, size)), bytes=2 * a.nbytes,
                     check=lambda: gpu.assert_equal(b, a))
    assert result.time_ns > 0

def test_other(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("other.cu", "other")
    a = gpu.random(512, seed=2)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=2, block=256, args=(a, b, 512)), name="doubling", check=lambda: gpu.assert_equal(b, a))
"""

CALLABLE = """
def test_steps(cuda_kernel, gpu, gpuperf):
    kernels = [cuda_kernel("work.cu", "work", options=[f"-DSTEPS={{steps}}"]) for steps in {steps}]
    a = gpu.random(1024, seed=1)
    b = gpu.empty_like(a)
    launches = [kernel.launch(grid=8, block=256, args=(a, b, 1024)) for kernel in kernels]

    def steps():
        for launch in launches:
            launch()

    result = gpuperf(steps, check=lambda: gpu.assert_equal(b, a){more})
    assert result.time_ns > 0
"""
"""A test of a callable that launches ``work`` by so many ``steps``, one after another."""

READER = """

def pytest_configure(config):
    from pytest_gpuperf.counters import collect
    from simulated_gpu import read_stand_in_report
    patch = pytest.MonkeyPatch()
    patch.setattr(collect, "read_report", read_stand_in_report)
    config.add_cleanup(patch.undo)
"""

FILES = {"work.cu": KERNEL, "other.cu": OTHER, "test_suite.py": TEST, "conftest.py": SIMULATED}
RECORD = ("--update-baselines", "--gpuperf-disturbed")
"""Forced: the simulated noise may look like outliers, which would leave a workload unrecorded."""

Command = Callable[..., tuple[int, str, str]]
"""``gpuperf``: status, output and errors."""
WRITTEN = 1_000_000_000
"""When a suite wrote its first file, in seconds since 1970."""


class Suite:
    """A suite under test: two kernels, three tests."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.times = self.path / "baselines/simulated-gpu/test_suite.jsonl"
        """Where times are on record."""
        self._writes = 0
        self.write("work.cu", KERNEL)
        self.write("other.cu", OTHER)
        self.write("test_suite.py", TEST)

    def write(self, name: str, text: str) -> None:
        """Each time with a later second: byte code is taken for that of a text of as many characters otherwise."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self._writes += 1
        os.utime(path, (WRITTEN + self._writes,) * 2)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.path / name).read_text(encoding="utf-8")
        assert old in text
        self.write(name, text.replace(old, new))

    def append(self, name: str, more: str) -> None:
        self.write(name, (self.path / name).read_text() + more)

    def change_code(self) -> None:
        """Give ``work`` other machine code of as many instructions, so of the same speed."""
        self.edit("work.cu", "x * 1.5f", "x * 1.25f")

    def in_second_process(self, statement: str) -> None:
        """Run ``statement`` before each test of a process that confirms."""
        text = (self.path / "conftest.py").read_text(encoding="utf-8")
        condition = "if confirms(item.config):"
        self.write("conftest.py", f"{text}\ndef pytest_runtest_setup(item):\n    {condition}\n        {statement}\n")

    def run(self, *arguments: str, subprocess: bool = False) -> pytest.RunResult:
        runner = self.pytester.runpytest_subprocess if subprocess else self.pytester.runpytest_inprocess
        return runner("-p", "no:cacheprovider", *arguments)

    def ncu_calls(self) -> list[dict[str, Any]]:
        """What the stand-in for ncu was called with."""
        path = self.path / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def counters(self) -> dict[str, dict[str, float]]:
        """Counters on record, by test; each has one workload."""
        tests = read_evidence(self.times)["tests"]
        return {test: next(iter(work.values())).get("counters", {}) for test, work in tests.items()}

    def judgements(self) -> list[dict[str, Any]]:
        """What the last run found: each judgement with the name of its ``test``."""
        tests = json.loads((self.path / ".gpuperf/last-run.json").read_text())["tests"]
        return [
            one | {"test": test["test"]}
            for test in tests
            for work in test["workloads"]
            for one in work.get("judgements", [])
        ]

    def blame_another_compiler(self) -> None:
        """Let all baselines be of a compiler that made other machine code."""
        for path in (self.path / "baselines").rglob("*.json*"):
            path.write_text(path.read_text().replace("nvrtc 13.", "nvrtc 12."))

    def baseline_files(self) -> dict[str, bytes]:
        root = self.path / "baselines"
        return {str(f.relative_to(root)): f.read_bytes() for f in sorted(root.rglob("*.json*"))}


def hog_test(options: str = "[]", name: str = "hog") -> str:
    """A test of the kernel ``hog``."""
    return (
        f"def test_{name}(cuda_kernel, gpu, gpuperf):\n"
        f"    kernel = cuda_kernel('hog.cu', 'hog', options={options})\n"
        "    a = gpu.random(4096, seed=1)\n"
        "    gpuperf(kernel.launch(grid=1, block=32, args=(a, gpu.empty_like(a))))\n"
    )


LAUNCHING = """kernel = cuda_kernel("other.cu", "other")
a = gpu.random(512, seed=1)
"""
MEASURING = f"{LAUNCHING}launch = kernel.launch(grid=2, block=256, args=(a, a, 512))\n"


def run_bodies(suite: Suite, bodies: Iterable[str], *arguments: str, before: str = "") -> pytest.RunResult:
    """One run of a test for each body."""
    text = "import functools\nimport numpy as np\n"
    for number, body in enumerate(bodies):
        lines = "".join(f"    {line}\n" for line in (before + body).splitlines())
        text += f"\ndef test_{number}(cuda_kernel, gpu, gpuperf):\n{lines}"
    suite.write("test_bodies.py", text)
    return suite.run("test_bodies.py", *arguments)


def sections(result: pytest.RunResult) -> dict[str, str]:
    """The words of each test that failed, by its name without ``test_``."""
    _, *parts = re.split(r"^_+ test_(\S+) _+$", result.stdout.str(), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def assert_refused(suite: Suite, refusals: Mapping[str, str], *arguments: str, before: str = "") -> None:
    """Each body of a test fails with its words; all of them in one run."""
    result = run_bodies(suite, refusals, *arguments, before=before)
    said = result.stdout.str()
    assert result.ret == 1, said
    assert "pytest_gpuperf/" not in said, "the traceback must end in the test"
    found = sections(result)
    lacking = {body: words for number, (body, words) in enumerate(refusals.items()) if words not in found[str(number)]}
    assert lacking == {}


def baselines_of(
    folder: Path,
    files: Mapping[str, str],
    *flags: str,
    before: Path | None = None,
    committed: bool = False,
    **environment: str,
) -> Path:
    """The baselines that a suite of these files records with these flags; the first process that asks does it.

    One that fails leaves the words of its run, and the next that asks tries again.  ``before``: baselines that the
    suite has already; ``committed``: in a repository, whose commit the records name.
    """
    baselines, done = folder / "baselines", folder / "done"
    with FileLock(folder.with_suffix(".lock")):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for name, text in {"pytest.ini": "", **files}.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8")
            if committed:
                commit(folder)
            if before is not None:
                shutil.copytree(before, baselines)
            run = subprocess.run(
                [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *flags], cwd=folder,
                env={**os.environ, **environment}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert run.returncode == 0, f"exit status {run.returncode} of {run.args}:\n{run.stdout}{run.stderr}"
            assert " refused" not in run.stdout, run.stdout
            done.touch()
    return baselines


def with_baselines(suite: Suite, folder: Path, files: Mapping[str, str], *flags: str, **more: Any) -> Suite:
    """The suite with these files alone and the baselines that they record; see ``baselines_of``."""
    recording = baselines_of(folder, files, *flags, **more)
    for name in FILES.keys() - files.keys():
        (suite.path / name).unlink(missing_ok=True)
    for name, text in files.items():
        (suite.path / name).parent.mkdir(exist_ok=True)
        suite.write(name, text)
    shutil.copytree(recording, suite.path / "baselines")
    return suite


def until(found: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What it gives, as soon as that is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.02)
    raise AssertionError("it did not come to that")
