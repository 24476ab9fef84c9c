"""What a test says that broke the GPU for its process, or found no memory there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from run_samples import Run

from pytest_gpuperf.device.device_errors import GpuFault
from pytest_gpuperf.model.device_facts import DeviceMemory
from pytest_gpuperf.process.gpu_fault import broken_by, memory_words

GIB = 2**30


def device(fault: str = "", launches: tuple[str, ...] = ("copy", "scale"), **memory: int) -> Any:
    return SimpleNamespace(
        fault=lambda: fault, launches=SimpleNamespace(last=launches), memory=lambda: DeviceMemory(**memory)
    )


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


class OutOfMemoryError(Exception):
    """As CuPy and PyTorch call theirs."""


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (OutOfMemoryError("none left"), True),
        (RuntimeError("cudaErrorMemoryAllocation: out of memory"), True),
        (RuntimeError("out of memory"), False),
        (None, False),
    ],
)
def test_who_holds_the_memory_is_told_where_there_was_none(run: Run, problem: BaseException | None, told: bool) -> None:
    assert memory_words(run.worker, problem) == ""
    run.worker.opened = device(total=2 * GIB, free=GIB, arrays=GIB)
    words = "1.00 GiB of 2.00 GiB are free\n    1.00 GiB  this process's arrays in CuPy's pool"
    assert memory_words(run.worker, problem) == (words if told else "")


def test_holders_are_told_the_largest_first(run: Run) -> None:
    sizes = {"total": 100, "free": 10, "arrays": 35, "unused": 20, "torch": 7, "others": 8}
    run.worker.opened = device(**{name: size * GIB for name, size in sizes.items()})
    assert memory_words(run.worker, OutOfMemoryError()).splitlines() == [
        "10.00 GiB of 100.00 GiB are free",
        "   35.00 GiB  this process's arrays in CuPy's pool",
        "   20.00 GiB  kept by CuPy's pool for reuse",
        "   20.00 GiB  contexts, modules and what else is not known",
        "    8.00 GiB  other processes",
        "    7.00 GiB  reserved by PyTorch in this process",
    ]
