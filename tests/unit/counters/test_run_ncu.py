"""A run of ncu is bounded, and nothing of it stays behind."""

from __future__ import annotations

import itertools
import sys
import time
from types import SimpleNamespace

import pytest

from pytest_gpuperf.counters import run_ncu
from pytest_gpuperf.counters.run_ncu import LOG, CountersUnavailable, command, environment, run


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:  # noqa: PTH123
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_run_leaves_its_status_and_its_words(tmp_path):
    (tmp_path / LOG).write_text("==PROF== from the log\n", encoding="utf-8")
    script = "print('==ERROR== early'); print('of the tests'); raise SystemExit(7)"
    done = run(python(script), tmp_path, tmp_path, limit_s=30)
    assert done.status == 7
    assert "==PROF== from the log" in done.words
    assert "==ERROR== early" in done.words
    assert "of the tests" not in done.words
    assert "of the tests" in done.target_words


def test_a_run_that_takes_too_long_is_ended_with_what_it_started(tmp_path, monkeypatch):
    """Its time is up once both of them run, however long they take to start."""
    started = tmp_path / "pids"
    monkeypatch.setattr(
        run_ncu, "time", SimpleNamespace(monotonic=lambda: 3.0 if started.exists() else 0.0, sleep=time.sleep)
    )
    script = (
        "import os, pathlib, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "pathlib.Path('part').write_text(f'{os.getpid()} {child.pid}')\n"
        "pathlib.Path('part').rename('pids')\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(CountersUnavailable, match=r"was not done after 2 s; .*--gpuperf-ncu=default"):
        run(python(script), tmp_path, tmp_path, limit_s=2)
    pids = [int(pid) for pid in started.read_text().split()]
    deadline = time.monotonic() + 30
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, pids))


def test_the_command_leaves_the_clocks_alone_and_profiles_ranges_only(tmp_path):
    words = command(tmp_path / "ncu", tmp_path, ["a__b.sum", "a__c.pct"], "cold", ["python", "-m", "pytest"])
    assert (words[0], words[-3:]) == (str(tmp_path / "ncu"), ["python", "-m", "pytest"])
    options = dict(itertools.pairwise(words))
    wanted = {"--clock-control": "none", "--cache-control": "all", "--metrics": "a__b.sum,a__c.pct",
              "--nvtx-include": "regex:gpuperf:.*/"}  # fmt: skip
    assert {name: options[name] for name in wanted} == wanted
    warm = command(tmp_path / "ncu", tmp_path, ["a__b.sum"], "warm", [])
    assert dict(itertools.pairwise(warm))["--cache-control"] == "none"


def test_ncu_gets_a_temporary_folder_of_its_own_and_the_locks_stay_where_they_are(tmp_path, monkeypatch):
    own = {"HOME": "/home/me", "GPUPERF_LOCK_DIR": str(tmp_path / "locks")}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    assert environment(tmp_path).items() >= {**own, "TMPDIR": str(tmp_path / "tmp")}.items()
    assert (tmp_path / "tmp").is_dir()
