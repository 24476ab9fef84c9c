"""What a test has to say that broke the GPU for its process, or found no memory there."""

from __future__ import annotations

import traceback

import pytest

from pytest_gpuperf.device.device_errors import GpuFault
from pytest_gpuperf.model.device_facts import DeviceMemory
from pytest_gpuperf.run import Run
from pytest_gpuperf.session.isolation import launched_lines


def broken_by(item: pytest.Item, worker: Run, problem: BaseException | None) -> BaseException | None:
    """The failure of a test after which nothing runs on the GPU in this process any more; None if it still does.

    ``problem`` is what the test raised, if anything: a fault is often seen first by the next call that waits.
    """
    device = worker.opened
    fault = device.fault() if device is not None else ""
    if device is None or not fault:
        return None
    said = str(problem) if isinstance(problem, GpuFault) else f"a kernel faulted on the GPU: {fault}"
    lines = [said, *launched_lines(device), *_seen_at(item, problem)]
    lines += [
        "Nothing more can run on the GPU in this process; no other test fails for it.",
        f"The kernel's line: compute-sanitizer python -m pytest '{item.nodeid}'",
    ]
    return pytest.fail.Exception("\n".join(lines), pytrace=False)


def _seen_at(item: pytest.Item, problem: BaseException | None) -> list[str]:
    """The test's own line that the error came up in."""
    frames = traceback.extract_tb(problem.__traceback__) if problem is not None else []
    own = [frame.lineno for frame in frames if frame.filename == str(item.path)]
    return [f"  seen at {item.path.name}:{own[-1]}"] if own else []


def memory_words(worker: Run, problem: BaseException | None) -> str:
    """Who holds the GPU's memory, for a test that got none; empty for any other end."""
    device = worker.opened
    if device is None or problem is None or not _is_out_of_memory(problem):
        return ""
    return described(device.memory())


def _is_out_of_memory(problem: BaseException) -> bool:
    """Of the GPU's: CuPy's and PyTorch's errors are called so, the driver's says so."""
    return type(problem).__name__ == "OutOfMemoryError" or "cudaErrorMemoryAllocation" in str(problem)


def described(memory: DeviceMemory) -> str:
    """Sizes in GiB, the largest holder first."""
    holders = {
        "this process's arrays in CuPy's pool": memory.arrays,
        "kept by CuPy's pool for reuse": memory.unused,
        "reserved by PyTorch in this process": memory.torch,
        "other processes": memory.others,
    }
    known = sum(holders.values())
    holders["contexts, modules and what else is not known"] = max(memory.total - memory.free - known, 0)
    rows = [f"{gib(size):>8} GiB  {what}" for what, size in sorted(holders.items(), key=lambda one: -one[1]) if size]
    return "\n".join([f"{gib(memory.free)} GiB of {gib(memory.total)} GiB are free", *rows])


def gib(size: int) -> str:
    """Bytes as GiB, two decimals."""
    return f"{size / 2**30:.2f}"
