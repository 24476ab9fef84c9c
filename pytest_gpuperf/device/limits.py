"""Does a launch configuration fit the kernel and the device?  Pure."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from pytest_gpuperf.compile.cubin.occupancy import occupancy
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.interface import Dim3
from pytest_gpuperf.model.device_facts import DeviceFacts
from pytest_gpuperf.model.evidence import KernelBinary


def dim3(given: int | Sequence[int], what: str) -> Dim3:
    """1 to 3 whole numbers above 0, filled up with ones.  Raises ``LaunchError`` that names ``what``."""
    values: Any = tuple(given) if isinstance(given, Sequence) else (given,)
    try:
        numbers = tuple(operator.index(value) for value in values)
    except TypeError:
        raise LaunchError(f"{what}={given!r}: it takes 1 to 3 whole numbers") from None
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise LaunchError(f"{what}={given!r}: it takes 1 to 3 whole numbers above 0")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def dynamic_shared(kernel: str, given: Any) -> int:
    """``shared_bytes`` of a launch as Python's int, whichever library's type it has.  Raises ``LaunchError``."""
    try:
        number = operator.index(given)
    except TypeError:
        number = -1
    if number < 0:
        raise LaunchError(f"{kernel}: shared_bytes={given!r}: it takes a whole number from 0")
    return number


def threads_in(block: Dim3) -> int:
    """Threads per block."""
    x, y, z = block
    return x * y * z


def check_limits(
    binary: KernelBinary, facts: DeviceFacts, grid: Dim3, block: Dim3, shared_bytes: int, *, resident: bool
) -> None:
    """Raise ``LaunchError`` if the driver would refuse the launch.

    ``resident`` asks also whether one block fits an SM of the architecture, where it is going to run.
    """
    _check_axes(binary.name, "grid", grid, facts.max_grid)
    _check_axes(binary.name, "block", block, facts.max_block)
    if binary.required_block not in (None, block):
        raise LaunchError(
            f"{binary.name}: block={block}, and its machine code was compiled for {binary.required_block} alone "
            "(__block_size__ or .reqntid): launch it so, or compile it for another block"
        )
    threads = threads_in(block)
    device_bound, own_bound = facts.max_threads_per_block, binary.max_threads_per_block
    for bound, allows in ((device_bound, "the device allows"), (own_bound, "its __launch_bounds__ allow")):
        if bound is not None and threads > bound:
            raise LaunchError(f"{binary.name}: block={block} has {threads} threads, and {allows} {bound}")
    _check_shared(binary, facts, shared_bytes)
    if resident:
        _check_resident(binary, threads, shared_bytes)


def _check_axes(name: str, what: str, sizes: Dim3, limits: tuple[int, ...]) -> None:
    for axis, size, limit in zip("xyz", sizes, limits, strict=True):
        if size > limit:
            raise LaunchError(f"{name}: {what}={sizes} is beyond the device's limit of {limit} in {axis}")


def _check_shared(binary: KernelBinary, facts: DeviceFacts, shared_bytes: int) -> None:
    shared_bytes = dynamic_shared(binary.name, shared_bytes)
    static, limit = binary.profile.shared_bytes, facts.shared_bytes_per_block_optin
    if static + shared_bytes > limit:
        raise LaunchError(
            f"{binary.name}: {static} bytes of static and {shared_bytes} of dynamic shared memory per block are "
            f"beyond the device's limit of {limit}"
        )


def _check_resident(binary: KernelBinary, threads: int, shared_bytes: int) -> None:
    if occupancy(binary.profile, binary.arch, threads, shared_bytes).blocks_per_sm == 0:
        raise LaunchError(
            f"{binary.name}: a block of {threads} threads with {binary.profile.registers} registers each does not fit "
            f"an SM of {binary.arch}: use smaller blocks, or bound the registers with __launch_bounds__({threads})"
        )
