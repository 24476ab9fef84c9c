"""What every test shares: pytester, a quiet environment, one Hypothesis profile for people and one for CI."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import light_pytest
import pytest
import warm_nvdisasm
import warm_python
from hypothesis import HealthCheck, settings

from pytest_gpuperf.cli.command_line import main
from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.read_options import CI_SERVICES

pytest_plugins = ["pytester"]
light_pytest.use()

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "dev")

LEAN = (
    "-p no:hypothesispytest -p no:unraisableexception -p no:debugging -p no:doctest -p no:faulthandler "
    "-p no:legacypath -p no:pastebin -p no:recwarn -p no:setuponly -p no:setupplan -p no:stepwise"
)
"""No suite under test needs Hypothesis, whose import costs a child process more than its work, the search for garbage
at the end of a run, which takes a sixth of it (what an object raises as it dies reaches this run's own hook), or
pytest's plugins that do nothing here but be registered in each of two thousand runs."""
INHERITED = ("CI", *CI_SERVICES, "PY_COLORS", "FORCE_COLOR", "NO_COLOR", "PYTHONDONTWRITEBYTECODE")
"""Not inherited: a test sets what matters to it.  Without the last, child processes need not compile Python anew."""

LONGEST = ("test_causes_report.py", "test_selftest_command.py", "test_documented_blocks.py")
"""Run first: one of them begun last would keep a single worker busy when the others have nothing left to do."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "slow" not in config.option.markexpr:
        items[:] = [item for item in items if item.get_closest_marker("slow") is None]
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_collection_finish() -> None:
    gc.freeze()  # what is there by now stays: a search for garbage, of which many runs make one, need not go through it


@pytest.fixture(scope="module", autouse=True)
def no_search_of_what_was_imported() -> None:
    """As above for what the modules before have imported: gated runs within this process collect garbage themselves."""
    gc.freeze()


@pytest.fixture(scope="session")
def shared_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all processes of this session, pytest-xdist workers included: what is in it needs locks."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if hasattr(request.config, "workerinput") else own) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session", autouse=True)
def quiet_environment(shared_folder: Path) -> Iterator[None]:
    """A test means the same on a desk and under CI, and finds what other tests of this session have compiled."""
    with pytest.MonkeyPatch.context() as patch:
        for name in INHERITED:
            patch.delenv(name, raising=False)
        patch.setenv("PYTEST_ADDOPTS", LEAN)
        patch.setenv("GPUPERF_CACHE_DIR", str(shared_folder / "compiled"))
        patch.setenv("OPENBLAS_NUM_THREADS", "1")  # the others take half a second of every core, and wait
        yield


@pytest.fixture(scope="session", autouse=True)
def warm_disassembler(quiet_environment: None) -> Iterator[None]:
    """A disassembly need not start nvdisasm anew, here or in a child process; see ``warm_nvdisasm``."""
    with warm_nvdisasm.servers() as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        with contextlib.suppress(ToolchainMissing):
            warm_nvdisasm.use()
        yield


@pytest.fixture(scope="session", autouse=True)
def warm_children(warm_disassembler: None) -> Iterator[None]:
    """A child process of pytest need not import pytest and the plugin anew; see ``warm_python``."""
    if warm_python.COLD in os.environ:
        yield
        return
    with warm_python.start() as program, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", program)
        yield


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Without the options of the run that it is part of; with those of every suite under test."""
    monkeypatch.setenv("PYTEST_ADDOPTS", LEAN)
    return pytester


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """``gpuperf``, in a folder: its status, output and errors."""

    def run(*arguments: str | Path, folder: str = ".") -> tuple[int, str, str]:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            return main(list(map(str, arguments))), *capsys.readouterr()

    return run
