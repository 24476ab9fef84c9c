"""What a test says that broke the GPU for its process."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from run_samples import Run

from pytest_gpuperf.device.device_errors import GpuFault
from pytest_gpuperf.process.gpu_fault import broken_by


def device(fault: str = "", launches: tuple[str, ...] = ("copy", "scale")) -> Any:
    return SimpleNamespace(fault=lambda: fault, launches=SimpleNamespace(last=launches))


@pytest.fixture
def broken(run: Run) -> Run:
    run.worker.opened = device("an illegal address")
    return run


def raised(problem: BaseException) -> BaseException:
    with pytest.raises(type(problem)) as caught:
        raise problem
    return caught.value


def test_a_process_whose_gpu_works_goes_on(run: Run) -> None:
    assert broken_by(run.item(), run.worker, ValueError("no")) is None  # it has used none
    run.worker.opened = device()
    assert broken_by(run.item(), run.worker, ValueError("no")) is None


def test_a_fault_is_told_with_the_launches_before_it(broken: Run) -> None:
    item = broken.item()
    assert str(broken_by(item, broken.worker, None)) == (
        "a kernel faulted on the GPU: an illegal address\n"
        "  last launched: copy\n"
        "  before that: scale\n"
        "Nothing more can run on the GPU in this process; no other test fails for it.\n"
        f"The kernel's line: compute-sanitizer python -m pytest '{item.nodeid}'"
    )
    broken.worker.opened = device("an illegal address", ())
    assert "\n  none of its launches was this plugin's\n" in str(broken_by(item, broken.worker, None))


def test_the_error_that_tells_of_it_is_told_with_the_tests_own_line(broken: Run) -> None:
    item = broken.item()
    item.path = Path(__file__)
    problem = raised(GpuFault("it faulted at address 0"))
    line = raised.__code__.co_firstlineno + 2
    lines = str(broken_by(item, broken.worker, problem)).splitlines()
    assert (lines[0], lines[3]) == ("it faulted at address 0", f"  seen at {item.path.name}:{line}")
    seen_elsewhere = str(broken_by(item, broken.worker, raised(ValueError("no")))).splitlines()
    assert seen_elsewhere[0] == "a kernel faulted on the GPU: an illegal address"
    item.path = Path("/elsewhere/test_copy.py")
    assert "seen at" not in str(broken_by(item, broken.worker, problem))


def test_it_fails_the_test_without_a_traceback(broken: Run) -> None:
    failure = broken_by(broken.item(), broken.worker, None)
    assert isinstance(failure, pytest.fail.Exception)
    assert not failure.pytrace
