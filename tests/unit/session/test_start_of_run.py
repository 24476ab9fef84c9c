"""The start of a run: which plugins it registers for what it was asked for, and how it may be ended."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from run_samples import Run

from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.tests_found import FindingTests
from pytest_gpuperf.model.task import ConfirmTask
from pytest_gpuperf.process import signals
from pytest_gpuperf.session import early_exit, start_of_run
from pytest_gpuperf.session.early_exit import note_early_exit
from pytest_gpuperf.session.start_of_run import begin
from pytest_gpuperf.session.taken_back import UNTOLD, last_word

FINDING, SHARDING, FAULTS = "gpuperf-finding-tests", "gpuperf-sharding", "gpuperf-faults"
REPORTING = ["gpuperf-reporting", "gpuperf-messages"]


@pytest.fixture
def done(run: Run, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was set up, and the names of the plugins that were registered, in their order."""
    calls: list[Any] = []
    for module, name in (
        (start_of_run, "end_with_parent"), (start_of_run, "choose_nvrtc"), (start_of_run, "end_in_order"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, lambda *given, name=name: calls.append((name, *given)))
    monkeypatch.setattr(start_of_run, "FaultPlugin", lambda *given: given)
    monkeypatch.setattr(start_of_run, "Sharding", lambda *given: given)
    run.config.pluginmanager.register = lambda plugin, name: calls.append((name, plugin))
    return calls


def names(run: Run, done: list[Any], **options: Any) -> list[str]:
    done.clear()
    begin(run.config, run.with_options(**options).options)
    assert done.pop(0) == ("end_with_parent",)
    return [name for name, *_ in done]


def test_a_gated_run_finds_tests_can_be_ended_and_reports(run: Run, done: list[Any]) -> None:
    order = [FINDING, "end_in_order", FAULTS, *REPORTING]
    assert names(run, done) == order
    found = dict(done)
    assert found[FINDING] is run.config.stash[stash.FINDING]
    assert isinstance(found[FINDING], FindingTests)
    assert found["end_in_order"] is run.config
    assert found[FAULTS] == (run.config, run.options)
    assert found["gpuperf-messages"] is found["gpuperf-reporting"].messages
    assert found["gpuperf-reporting"].config is run.config
    assert found["gpuperf-reporting"].options is run.options


def test_a_worker_of_pytest_xdist_does_not_report(run: Run, done: list[Any]) -> None:
    run.config.workerinput = {}
    assert names(run, done) == [FINDING, "end_in_order", FAULTS]


def test_a_run_that_counts_alone_finds_no_tests(run: Run, done: list[Any]) -> None:
    asked = names(run, done, enabled=False, ncu=("full",))
    assert asked == ["end_in_order", FAULTS, *REPORTING]
    assert stash.FINDING not in run.config.stash


def test_a_plain_run_is_left_alone_and_may_be_a_shard(run: Run, done: list[Any]) -> None:
    nvrtc = Path("/opt/nvrtc")
    assert names(run, done, enabled=False, nvrtc=nvrtc) == []
    assert names(run, done, enabled=False, shard=(1, 2)) == [SHARDING]
    assert done == [(SHARDING, (run.config, (1, 2)))]


def test_another_compiler_is_chosen_before_anything_compiles(run: Run, done: list[Any]) -> None:
    assert names(run, done, nvrtc=Path("/opt/nvrtc"))[:2] == ["choose_nvrtc", FINDING]
    assert done[0] == ("choose_nvrtc", Path("/opt/nvrtc"))


def test_a_folder_without_a_compiler_is_a_usage_error(
    run: Run, done: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(folder: Path) -> None:
        raise ToolchainMissing("it holds none")

    monkeypatch.setattr(start_of_run, "choose_nvrtc", missing)
    with pytest.raises(pytest.UsageError, match=r"^--gpuperf-nvrtc: it holds none$"):
        names(run, done, nvrtc=Path("/opt/nvrtc"))


def test_a_child_finds_tests(run: Run, done: list[Any]) -> None:
    assert names(run, done, enabled=False, task=ConfirmTask(folder=Path("/task"), places=()))[0] == FINDING


# --- SIGTERM ---------------------------------------------------------------------------------------


@pytest.fixture
def handler() -> Iterator[None]:
    """That of SIGTERM is as it was afterwards."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("handler")
def test_sigterm_is_an_interrupt_once_while_the_run_lasts(run: Run) -> None:
    ends: list[Any] = []
    run.config.add_cleanup = ends.append
    signals.end_in_order(run.config)
    with pytest.raises(KeyboardInterrupt, match=r"^SIGTERM$"):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN  # a second one would cut the end short
    ends[0]()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    signals.end_in_order(run.config)
    ends[1]()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.usefixtures("handler")
def test_a_handler_of_somebody_elses_stays(run: Run) -> None:
    def own(number: int, frame: object) -> None:
        """Of another plugin."""

    ends: list[Any] = []
    run.config.add_cleanup = ends.append
    signal.signal(signal.SIGTERM, own)
    signals.end_in_order(run.config)
    assert (signal.getsignal(signal.SIGTERM), ends) == (own, [])
    signals._give_back()
    assert signal.getsignal(signal.SIGTERM) == own
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    thread = threading.Thread(target=signals.end_in_order, args=(run.config,))
    thread.start()
    thread.join()
    assert (signal.getsignal(signal.SIGTERM), ends) == (signal.SIG_DFL, [])


# --- an exit in the middle -------------------------------------------------------------------------


class Left(BaseException):
    """Stands for the end of this process."""


@pytest.fixture
def statuses(run: Run, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Statuses with which this process would have ended, after what was given back before."""
    found: list[Any] = []

    def leave(status: int) -> None:
        found.append(status)
        raise Left

    monkeypatch.setattr(os, "_exit", leave)
    run.config._ensure_unconfigure = lambda: found.append("given back")
    return found


def left(status: int) -> None:
    with pytest.raises(Left):
        os._exit(status)


def test_an_exit_that_looks_green_has_the_status_of_the_verdicts(
    run: Run, statuses: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[Any] = []
    run.config.add_cleanup = ends.append
    before = os._exit
    note_early_exit(run.config)
    left(0)
    run.config.stash[stash.STATUS] = 11
    left(0)
    left(3)
    assert statuses == ["given back", UNTOLD, "given back", 11, 3]
    monkeypatch.setattr(early_exit.os, "getpid", lambda: -1)
    left(0)  # in a process that was forked off
    assert statuses[-2:] == [3, 0]
    ends[0]()
    assert os._exit is before


def test_what_goes_wrong_at_such_an_end_changes_nothing_and_a_later_function_stays(
    run: Run, statuses: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("no")

    ends: list[Any] = []
    run.config.add_cleanup = ends.append
    run.config._ensure_unconfigure = broken
    note_early_exit(run.config)
    left(0)
    assert statuses == [UNTOLD]

    def later(status: int) -> None:
        """Of a plugin that came after this one."""

    monkeypatch.setattr(os, "_exit", later)
    ends[0]()
    assert os._exit is later


def test_the_last_word_says_why_a_green_exit_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert (last_word(0), capsys.readouterr().err) == (0, "")
    assert last_word(None) == UNTOLD == 13
    remedy = ": see to the test, conftest or plugin that ends it\n"
    assert capsys.readouterr().err == f"gpuperf: this run ended before its verdicts were told{remedy}"
    assert last_word(11) == 11
    assert capsys.readouterr().err == f"gpuperf: this run ended as green, and its verdicts are not (status 11){remedy}"
