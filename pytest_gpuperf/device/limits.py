"""Does a launch fit the kernel and the device?  Pure."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_gpuperf.compile.cubin.occupancy import occupancy
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.interface import COOPERATIVE, Configuration, Dim3, LaunchAttributes
from pytest_gpuperf.model.device_facts import DeviceFacts
from pytest_gpuperf.model.evidence import KernelBinary

_CLUSTER = re.compile(r" cluster=\((\d+), (\d+), (\d+)\)")


def dim3(given: int | Sequence[int], what: str) -> Dim3:
    """1 to 3 whole numbers above 0, filled up with ones.  Raises ``LaunchError`` that names ``what``."""
    values: Any = tuple(given) if isinstance(given, Sequence) else (given,)
    try:
        numbers = tuple(map(operator.index, values))
    except TypeError:
        numbers = ()
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


def attributes_of(launch: str) -> LaunchAttributes:
    """Those in the ``launch`` of an identity on record."""
    words, found = launch.partition(" constant ")[0], _CLUSTER.search(launch)
    cluster = None if found is None else (int(found[1]), int(found[2]), int(found[3]))
    return LaunchAttributes(COOPERATIVE in words, cluster)


def check_launch(binary: KernelBinary, facts: DeviceFacts, launch: Configuration, *, resident: bool) -> None:
    """Raise ``LaunchError`` if the driver would refuse the launch; what attributes may be, it says itself.

    ``resident`` asks also whether one block fits an SM of the architecture, where it is going to run.
    """
    for why in _obstacles(binary, facts, launch, resident):
        raise LaunchError(f"{binary.name}: {why}")


def _obstacles(binary: KernelBinary, facts: DeviceFacts, launch: Configuration, resident: bool) -> Iterator[str]:
    grid, block, shared_bytes, _ = launch
    threads, profile = threads_in(block), binary.profile
    for what, sizes, limits in (("grid", grid, facts.max_grid), ("block", block, facts.max_block)):
        if any(size > limit for size, limit in zip(sizes, limits, strict=True)):
            yield f"{what}={sizes} is beyond the device's limit of {limits}"
    if binary.required_block not in (None, block):
        yield f"block={block}, and its machine code was compiled for {binary.required_block} alone"
    most = min(facts.max_threads_per_block, binary.max_threads_per_block or facts.max_threads_per_block)
    if threads > most:
        yield f"block={block} has {threads} threads, and the device or its __launch_bounds__ allow {most}"
    if profile.shared_bytes + shared_bytes > facts.shared_bytes_per_block_optin:
        yield (
            f"{profile.shared_bytes} bytes of static and {shared_bytes} of dynamic shared memory per block are "
            f"beyond the device's limit of {facts.shared_bytes_per_block_optin}"
        )
    if resident and occupancy(profile, binary.arch, threads, shared_bytes).blocks_per_sm == 0:
        yield (
            f"a block of {threads} threads with {profile.registers} registers each does not fit an SM of "
            f"{binary.arch}: use smaller blocks, or bound the registers with __launch_bounds__({threads})"
        )
