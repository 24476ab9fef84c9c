"""Who holds the GPU's memory, for a test that got none."""

from __future__ import annotations

from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.model.device_memory import DeviceMemory


def memory_words(worker: Worker, problem: BaseException | None) -> str:
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
