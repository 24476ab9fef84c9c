"""What a test says that broke the GPU for its process, waited in vain for it, or found no memory there."""

from __future__ import annotations

import traceback

import pytest

from pytest_gpuperf.device.device_errors import GpuFault
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.model.device_facts import DeviceMemory
from pytest_gpuperf.run import Run


def endless_message(device: Device, seconds: float) -> str:
    """What to say of a kernel that was ended after so many ``seconds``."""
    lines = [
        f"nothing came back from the GPU for {seconds:.0f} s: a kernel does not end",
        *launched_lines(device),
        "Its process was ended. A loop that waits for what no thread does, a barrier that not all threads reach, or "
        "blocks that wait for blocks that have no room yet do not end; if it only takes this long, give it "
        "--gpuperf-kernel-timeout=SECONDS",
    ]
    return "\n".join(lines)


def launched_lines(device: Device) -> list[str]:
    """The test's last launches, the newest first."""
    last = device.launches.last
    if not last:
        return ["  none of its launches was this plugin's"]
    return [f"  {'last launched' if number == 0 else 'before that'}: {one}" for number, one in enumerate(last)]


def broken_by(item: pytest.Item, worker: Run, problem: BaseException | None) -> BaseException | None:
    """The failure of a test after which nothing runs on the GPU in this process any more; None if it still does.

    ``problem`` is what the test raised, if anything: a fault is often seen first by the next call that waits.
    """
    device = worker.opened
    fault = device.fault() if device is not None else ""
    if device is None or not fault:
        return None
    frames = traceback.extract_tb(problem.__traceback__) if problem is not None else []
    own = [frame.lineno for frame in frames if frame.filename == str(item.path)]
    lines = [
        str(problem) if isinstance(problem, GpuFault) else f"a kernel faulted on the GPU: {fault}",
        *launched_lines(device),
        *([f"  seen at {item.path.name}:{own[-1]}"] if own else []),
        "Nothing more can run on the GPU in this process; no other test fails for it.",
        f"The kernel's line: compute-sanitizer python -m pytest '{item.nodeid}'",
    ]
    return pytest.fail.Exception("\n".join(lines), pytrace=False)


def memory_words(worker: Run, problem: BaseException | None) -> str:
    """The holders, where ``problem`` says that the GPU's memory is full; empty for any other end of a test."""
    device = worker.opened
    if device is None or problem is None:
        return ""  # CuPy's and PyTorch's errors are called so, the driver's says so
    full = type(problem).__name__ == "OutOfMemoryError" or "cudaErrorMemoryAllocation" in str(problem)
    return described(device.memory()) if full else ""


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
