"""``cuLaunchKernelEx`` by the driver's binding: launches that CuPy has no call for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pytest_gpuperf.device.device_errors import LoadError
from pytest_gpuperf.device.interface import Dim3


def launch_extended(
    driver: Any,
    function: int,
    stream: int,
    grid: Dim3,
    block: Dim3,
    args: Sequence[Any],
    dynamic_shared_bytes: int,
    *,
    cooperative: bool,
    cluster: Dim3 | None,
) -> None:
    """Enqueue ``function``, a ``CUfunction``, on ``stream``; ``args`` are NumPy scalars and arrays of one element.

    Raises ``LoadError`` without the binding, and if the driver refuses the launch.
    """
    if not hasattr(driver, "cuLaunchKernelEx"):
        raise LoadError("cooperative launches and clusters need the driver's binding: pip install cuda-bindings")
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = block
    config.sharedMemBytes = dynamic_shared_bytes
    config.hStream = driver.CUstream(stream)
    attributes = _attributes(driver, cooperative, cluster)
    config.attrs, config.numAttrs = attributes, len(attributes)
    values = [np.array(value) for value in args]  # alive until the driver has copied them
    addresses = np.array([value.ctypes.data for value in values], dtype=np.uint64)
    (status,) = driver.cuLaunchKernelEx(config, driver.CUfunction(function), addresses.ctypes.data, 0)
    if status != driver.CUresult.CUDA_SUCCESS:
        what = f"cooperative={cooperative}, cluster={cluster}"
        raise LoadError(f"the driver refuses the launch of grid={grid} block={block} {what}: {status.name}")


def _attributes(driver: Any, cooperative: bool, cluster: Dim3 | None) -> list[Any]:
    made = []
    if cooperative:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        made.append(attribute)
    if cluster is not None:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        dimensions = attribute.value.clusterDim
        dimensions.x, dimensions.y, dimensions.z = cluster
        made.append(attribute)
    return made
