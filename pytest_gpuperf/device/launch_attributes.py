"""Attributes of a launch beyond grid, block and shared memory: cooperative, in clusters.  Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from pytest_gpuperf.compile.cubin.occupancy import occupancy
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.interface import Dim3
from pytest_gpuperf.device.limits import dim3, threads_in
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
