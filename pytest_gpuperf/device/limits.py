"""Do a launch, its attributes and a cubin fit the kernel and the device?  Pure."""

from __future__ import annotations

import hashlib
import math
import operator
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from pytest_gpuperf.compile.compile_errors import BadCubin
from pytest_gpuperf.compile.cubin.cubin_reader import read_cubin
from pytest_gpuperf.compile.cubin.occupancy import occupancy
from pytest_gpuperf.device.device_errors import LaunchError, LoadError
from pytest_gpuperf.device.interface import Dim3
from pytest_gpuperf.model.device_facts import DeviceFacts
from pytest_gpuperf.model.evidence import KernelBinary

PORTABLE_CLUSTER = 8
"""Blocks of a cluster that every GPU with clusters takes (CUDA C++ Programming Guide)."""
_FIRST_WITH_CLUSTERS = 90
_CLUSTER = re.compile(r" cluster=\((\d+), (\d+), (\d+)\)")
_COOPERATIVE = " cooperative"


class LaunchAttributes(NamedTuple):
    """What ``cuLaunchKernelEx`` is told besides; none by default."""

    cooperative: bool = False
    """All blocks are resident at once, so that the grid may wait for itself."""
    cluster: Dim3 | None = None
    """Blocks of a cluster in x, y and z."""

    @property
    def entry(self) -> str:
        """Their part of the identity's launch: empty if there are none."""
        cluster = "" if self.cluster is None else f" cluster={self.cluster}"
        return f"{_COOPERATIVE if self.cooperative else ''}{cluster}"


PLAIN = LaunchAttributes()
"""A launch as any other."""


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
    name, threads = binary.name, threads_in(block)
    for what, sizes, limits in (("grid", grid, facts.max_grid), ("block", block, facts.max_block)):
        for axis, size, limit in zip("xyz", sizes, limits, strict=True):
            if size > limit:
                raise LaunchError(f"{name}: {what}={sizes} is beyond the device's limit of {limit} in {axis}")
    if binary.required_block not in (None, block):
        raise LaunchError(
            f"{name}: block={block}, and its machine code was compiled for {binary.required_block} alone "
            "(__block_size__ or .reqntid): launch it so, or compile it for another block"
        )
    device_bound, own_bound = facts.max_threads_per_block, binary.max_threads_per_block
    for bound, allows in ((device_bound, "the device allows"), (own_bound, "its __launch_bounds__ allow")):
        if bound is not None and threads > bound:
            raise LaunchError(f"{name}: block={block} has {threads} threads, and {allows} {bound}")
    static, most = binary.profile.shared_bytes, facts.shared_bytes_per_block_optin
    if static + dynamic_shared(name, shared_bytes) > most:
        raise LaunchError(
            f"{name}: {static} bytes of static and {shared_bytes} of dynamic shared memory per block are "
            f"beyond the device's limit of {most}"
        )
    if resident and occupancy(binary.profile, binary.arch, threads, shared_bytes).blocks_per_sm == 0:
        raise LaunchError(
            f"{name}: a block of {threads} threads with {binary.profile.registers} registers each does not fit "
            f"an SM of {binary.arch}: use smaller blocks, or bound the registers with __launch_bounds__({threads})"
        )


def attributes_of(launch: str) -> LaunchAttributes:
    """Those in the ``launch`` of an identity on record."""
    words, found = launch.partition(" constant ")[0], _CLUSTER.search(launch)
    cluster = None if found is None else (int(found[1]), int(found[2]), int(found[3]))
    return LaunchAttributes(_COOPERATIVE in words, cluster)


def checked_attributes(kernel: str, cooperative: object, cluster: int | Sequence[int] | None) -> LaunchAttributes:
    """As a test gives them.  Raises ``LaunchError``."""
    if not isinstance(cooperative, bool):
        raise LaunchError(f"{kernel}: cooperative={cooperative!r}: it takes True or False")
    return LaunchAttributes(cooperative, None if cluster is None else dim3(cluster, "cluster"))


def check_attributes(
    binary: KernelBinary, facts: DeviceFacts, attributes: LaunchAttributes, grid: Dim3, block: Dim3, shared_bytes: int
) -> None:
    """Raise ``LaunchError`` if the driver would refuse a launch with these attributes."""
    if attributes.cluster is not None:
        _check_cluster(binary, attributes.cluster, grid)
    if attributes.cooperative:
        per_sm = occupancy(binary.profile, binary.arch, threads_in(block), shared_bytes).blocks_per_sm
        most = per_sm * facts.sm_count
        if math.prod(grid) > most:
            raise LaunchError(
                f"{binary.name}: a cooperative launch of {math.prod(grid)} blocks, and {most} are resident at once: "
                f"{per_sm} on each of {facts.sm_count} SMs. Launch fewer, each with more of the work"
            )


def _check_cluster(binary: KernelBinary, cluster: Dim3, grid: Dim3) -> None:
    if int(re.sub(r"\D", "", binary.arch)) < _FIRST_WITH_CLUSTERS:
        raise LaunchError(f"{binary.name}: cluster={cluster}: {binary.arch} has no clusters, sm_90 is the first")
    if math.prod(cluster) > PORTABLE_CLUSTER:
        raise LaunchError(f"{binary.name}: cluster={cluster} has more than {PORTABLE_CLUSTER} blocks")
    if any(blocks % size for blocks, size in zip(grid, cluster, strict=True)):
        raise LaunchError(f"{binary.name}: grid={grid} is no multiple of cluster={cluster} in each of x, y and z")


def check_loadable(binary: KernelBinary, arch: str, sha256: str | None = None) -> None:
    """Raise ``LoadError`` unless the cubin is one for a GPU of ``arch``, holds the kernel, and is the one expected.

    ``sha256`` in hex is what a baseline has on record; None for what was compiled just now.
    """
    found = hashlib.sha256(binary.cubin).hexdigest()
    if sha256 is not None and found != sha256:
        raise LoadError(
            f"{binary.name}: the SHA-256 of its cubin is {found}, on record is {sha256}: the file was changed or "
            f"damaged. Restore it from version control, or record the baseline anew"
        )
    try:
        cubin = read_cubin(binary.cubin)
    except BadCubin as problem:
        raise LoadError(f"{binary.name}: its cubin cannot be loaded: {problem}") from problem
    if cubin.arch != arch:
        raise LoadError(f"{binary.name} was compiled for {cubin.arch}, and this GPU is {arch}")
    if re.sub("[af]$", "", binary.arch) != cubin.arch:
        raise LoadError(f"{binary.name}: its cubin is for {cubin.arch}, and its record says {binary.arch}")
    if binary.symbol not in cubin.kernels:
        raise LoadError(f"{binary.name}: its cubin has no kernel {binary.symbol}; it has {', '.join(cubin.kernels)}")
