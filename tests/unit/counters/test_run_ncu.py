"""ncu: where it is looked for, what it is started with, how it is ended, and what its words mean."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_gpuperf.counters import run_ncu
from pytest_gpuperf.counters.run_ncu import CountersUnavailable, find_ncu

WORDS = "NVIDIA (R) Nsight Compute Command Line Profiler\\nVersion {} (build 36398880) (public-release)"


def program(folder: Path, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ncu"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def says(version: str) -> str:
    return f'printf "{WORDS.format(version)}\\n"'


@pytest.fixture
def no_program(monkeypatch):
    """Nothing is installed but what a test puts there."""
    monkeypatch.setenv("PATH", "")
    for name in run_ncu.VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_path_wins_over_the_toolkit(tmp_path, no_program, monkeypatch):
    own = program(tmp_path / "path", says("2025.3.1.0"))
    program(tmp_path / "toolkit" / "bin", says("2024.1.0.0"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    found = find_ncu()
    assert (found.path, found.version, str(found)) == (own, (2025, 3, 1, 0), "ncu 2025.3.1.0")


@pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
def test_the_toolkits_variables_are_asked(tmp_path, no_program, monkeypatch, variable):
    own = program(tmp_path / "toolkit" / "bin", says("2022.4.0"))
    monkeypatch.setenv(variable, str(tmp_path / "toolkit"))
    assert find_ncu().path == own


def test_the_newest_toolkit_is_looked_at_first(tmp_path, no_program, monkeypatch):
    for version in ("12.0", "13.0"):
        program(tmp_path / f"cuda-{version}" / "bin", "printf hello")
    monkeypatch.setattr(run_ncu, "FOLDERS", (f"{tmp_path}/cuda*/bin".lstrip("/"),))
    found = find_ncu()
    assert (found.path, str(found)) == (tmp_path / "cuda-13.0" / "bin" / "ncu", "ncu of unknown version")


@pytest.mark.parametrize(("script", "words"), [
    (None, "neither on PATH nor in a CUDA toolkit; install Nsight Compute"), ("exit 3", "exit status 3"),
    ("echo broken >&2; exit 127", "broken"), (says("2022.3.9"), "ncu 2022.3.9 is too old: 2022.4 is needed; install"),
])  # fmt: skip
def test_what_is_wrong_is_said(tmp_path, no_program, monkeypatch, script, words):
    monkeypatch.setattr(run_ncu, "FOLDERS", ())
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    if script is not None:
        program(tmp_path, script)
    with pytest.raises(CountersUnavailable, match=words):
        find_ncu()


# --- a run ---------------------------------------------------------------------------------------


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_run_leaves_its_status_and_its_words(tmp_path):
    (tmp_path / run_ncu.LOG).write_text("==PROF== from the log\n", encoding="utf-8")
    script = "print('==ERROR== early'); print('of the tests'); raise SystemExit(7)"
    done = run_ncu.run(python(script), tmp_path, tmp_path, limit_s=30)
    assert done.status == 7
    assert "==PROF== from the log" in done.output
    assert "==ERROR== early" in done.output
    assert "of the tests" not in done.output
    assert "of the tests" in done.target_output


def test_a_run_that_takes_too_long_is_ended_with_what_it_started(tmp_path, monkeypatch):
    """Its time is up once both of them run, however long they take to start."""
    started, wait = tmp_path / "pids", subprocess.Popen.wait

    def waited(process, limit_s=None):
        while not started.exists():
            time.sleep(0.01)
        return wait(process, limit_s and 0.01)

    monkeypatch.setattr(subprocess.Popen, "wait", waited)
    script = (
        "import os, pathlib, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "pathlib.Path('part').write_text(f'{os.getpid()} {child.pid}')\n"
        "pathlib.Path('part').rename('pids')\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(CountersUnavailable, match=r"took more than 2 s; .*--gpuperf-ncu=default"):
        run_ncu.run(python(script), tmp_path, tmp_path, limit_s=2)
    pids = [int(pid) for pid in started.read_text().split()]
    deadline = time.monotonic() + 30
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, pids))


def test_the_command_leaves_the_clocks_alone_and_profiles_ranges_only(tmp_path):
    words = run_ncu.command(tmp_path / "ncu", tmp_path, ["a__b.sum", "a__c.pct"], "cold", ["python", "-m", "pytest"])
    assert (words[0], words[-3:]) == (str(tmp_path / "ncu"), ["python", "-m", "pytest"])
    options = dict(itertools.pairwise(words))
    wanted = {"--clock-control": "none", "--cache-control": "all", "--metrics": "a__b.sum,a__c.pct",
              "--nvtx-include": "regex:gpuperf:.*/"}  # fmt: skip
    assert {name: options[name] for name in wanted} == wanted
    warm = run_ncu.command(tmp_path / "ncu", tmp_path, ["a__b.sum"], "warm", [])
    assert dict(itertools.pairwise(warm))["--cache-control"] == "none"


def test_ncu_gets_a_temporary_folder_of_its_own_and_the_locks_stay_where_they_are(tmp_path, monkeypatch):
    own = {"HOME": "/home/me", "GPUPERF_LOCK_DIR": str(tmp_path / "locks")}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    assert run_ncu.environment(tmp_path).items() >= {**own, "TMPDIR": str(tmp_path / "tmp")}.items()
    assert (tmp_path / "tmp").is_dir()


# --- words ---------------------------------------------------------------------------------------

ERROR = "E   ModuleNotFoundError: No module named 'torch'\n1 error in 0.10s\n"
CONNECTED = "==PROF== Connected to process 4711 (/usr/bin/python3.11)\n"


@pytest.mark.parametrize(("words", "reason", "remedy"), [
    ("ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target "
     "device 0. For instructions on enabling permissions see https://developer.nvidia.com/ERR_NVGPUCTRPERM",
     "may not read the GPU's performance counters", "NVreg_RestrictProfilingToAdminUsers=0"),
    ("Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is "
     "concurrently collecting profiling data.", "another profiler", "dcgmi profile --pause"),
    ("Failed to initialize the profiler: LibraryNotLoaded. Check that a compatible driver library is loaded.",
     "sandbox", "outside of the sandbox"),
    ("Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).", "sandbox", "--gpus all"),
    ("Profiling is not supported on device 0. To find out supported GPUs refer --list-chips option.",
     "does not know this GPU", "newer Nsight Compute"),
    ("Cuda driver is not compatible with Nsight Compute.", "too new", "update the driver"),
])  # fmt: skip
def test_known_words_have_a_reason_and_a_remedy(words, reason, remedy):
    found = run_ncu.recognise(f"{CONNECTED}\n==ERROR== {words}\n==WARNING== No kernels were profiled.\n", "", 9)
    assert reason in found.reason
    assert remedy in found.remedy
    assert str(found) == f"{found.reason}; {found.remedy}"


@pytest.mark.parametrize(("words", "target", "status", "left_report", "reason"), [
    ("==ERROR== The application returned an error code (1).\n==WARNING== No kernels were profiled.\n", ERROR, 1, False,
     "ncu saw no kernel of any workload (The application returned an error code (1).)"),
    ("==WARNING== No kernels were profiled.\n", ERROR, 1, False,
     "ncu saw no kernel of any workload (ModuleNotFoundError: No module named 'torch')"),
    ("==WARNING== No kernels were profiled.\n", ERROR, 0, False, "ncu saw no kernel of any workload"),
    (CONNECTED, "collecting ...\nFatal Python error: Segmentation fault\n", 139, False,
     "ncu left no report, with exit status 139 (Fatal Python error: Segmentation fault)"),
    ("==ERROR== The moon is in the wrong house.\n", "", 9, False,
     "ncu left no report, with exit status 9 (The moon is in the wrong house.)"),
    ("", "", 0, False, "ncu left no report, with exit status 0 (no message)"),
    ("", "", 0, True, "the report of ncu has no readable result"),
])  # fmt: skip
def test_other_words_are_passed_on(words, target, status, left_report, reason):
    assert run_ncu.recognise(words, target, status, left_report=left_report).reason == reason


@pytest.mark.parametrize(("words", "names"), [
    (r"==ERROR== Failed to find metric regex:^bad_metric_xyz(\.(sum|min|max|avg|pct|ratio|max_rate))?$",
     ("bad_metric_xyz",)),
    ("==ERROR== Failed to find metric smsp__misspelt.sum.\n==ERROR== Failed to find metric l1tex__nope.avg\n",
     ("smsp__misspelt.sum", "l1tex__nope.avg")),
    ("==ERROR== something else\n", ()),
])  # fmt: skip
def test_unknown_metrics_are_named(words, names):
    assert run_ncu.unknown_metrics(words) == names
