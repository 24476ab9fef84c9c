"""The folder of a run goes with it, also where a signal comes while the run begins or ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from pytest_gpuperf.atomic_write import SCRATCH_VARIABLE
from pytest_gpuperf.context import run_folder


class Config:
    """pytest's, as far as cleanups go: the last one first."""

    def __init__(self):
        self.cleanups = []

    def add_cleanup(self, cleanup):
        self.cleanups.append(cleanup)

    def end(self):
        while self.cleanups:
            self.cleanups.pop()()


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv(SCRATCH_VARIABLE, raising=False)
    return tmp_path


def folders_in(temporary):
    return list(temporary.glob("gpuperf-runs-*/run-*"))


def test_the_folder_goes_with_the_run(temporary):
    config = Config()
    run_folder.open_run_folder(config)
    assert len(folders_in(temporary)) == 1
    config.end()
    assert folders_in(temporary) == []


@pytest.fixture
def other_thread():
    """One that the system may give a signal to, until the test is over."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_run_ends_leaves_no_folder(temporary, monkeypatch, other_thread, number):
    config, remove, calls = Config(), shutil.rmtree, []

    def disturbed(folder, **options):
        calls.append(folder)
        os.kill(os.getpid(), number)
        time.sleep(0.02)
        remove(folder, **options)

    run_folder.open_run_folder(config)
    monkeypatch.setattr(shutil, "rmtree", disturbed)
    before = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            config.end()
    finally:
        signal.signal(number, before)
    assert calls
    assert folders_in(temporary) == []


def test_what_a_child_leaves_while_the_folder_is_removed_goes_too(temporary, monkeypatch):
    config, remove, calls = Config(), shutil.rmtree, []

    def filled_once(folder, **options):
        remove(folder, **options)
        calls.append(folder)
        if len(calls) == 1:
            (folder / "late").mkdir(parents=True)

    run_folder.open_run_folder(config)
    monkeypatch.setattr(shutil, "rmtree", filled_once)
    config.end()
    assert folders_in(temporary) == []


def test_a_signal_while_the_folder_is_made_leaves_none(temporary, monkeypatch):
    config, make = Config(), run_folder.tempfile.mkdtemp

    def disturbed(**options):
        folder = make(**options)
        signal.raise_signal(signal.SIGINT)
        return folder

    monkeypatch.setattr(run_folder.tempfile, "mkdtemp", disturbed)
    with pytest.raises(KeyboardInterrupt):
        run_folder.open_run_folder(config)
    config.end()
    assert folders_in(temporary) == []


WITHOUT_CLEANUPS = """
import os, sys, types
from pytest_gpuperf.context import run_folder

run_folder.open_run_folder(types.SimpleNamespace(add_cleanup=lambda cleanup: None))
if not os.fork():
    sys.exit()
os.wait()
assert os.path.isdir(os.environ["GPUPERF_SCRATCH"])
"""


def test_where_cleanups_are_left_out_the_folder_goes_with_the_process_and_not_with_a_fork(temporary, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(temporary))
    subprocess.run([sys.executable, "-c", WITHOUT_CLEANUPS], check=True)
    assert list(temporary.glob("gpuperf-runs-*")) != []
    assert folders_in(temporary) == []


def test_sigterm_is_taken_for_an_interrupt_for_as_long_as_the_folder_is_there(temporary, pytester, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(temporary))
    pytester.makeconftest(
        """
        import pathlib, shutil, signal
        from pytest_gpuperf.context import run_folder

        def noted(folder, remove=shutil.rmtree, **options):
            if "run-" in str(folder):
                pathlib.Path("handler").write_text(getattr(signal.getsignal(signal.SIGTERM), "__name__", "none"))
            remove(folder, **options)

        shutil.rmtree = noted
        """
    )
    pytester.makepyfile("def test_nothing(): pass")
    pytester.runpytest_subprocess("--gpuperf")
    assert (pytester.path / "handler").read_text() == "hold_back"
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
