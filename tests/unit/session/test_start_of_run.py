"""The start of a run: which plugins it registers for what it was asked for, and how it may be ended."""

from __future__ import annotations

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
from pytest_gpuperf.session import start_of_run
from pytest_gpuperf.session.start_of_run import begin

FINDING, FAULTS = "gpuperf-finding-tests", "gpuperf-faults"
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


def test_a_plain_run_is_left_alone(run: Run, done: list[Any]) -> None:
    nvrtc = Path("/opt/nvrtc")
    assert names(run, done, enabled=False, nvrtc=nvrtc) == []


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
