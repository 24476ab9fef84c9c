"""Launches of another library, seen by capturing its call in a graph: configuration and parameters, nothing executed.

All by the driver's public calls: a stream in capture records what is enqueued on it (CUDA Driver API, "Graph
Management"), and a kernel's node tells grid, block, shared memory, attributes and the bytes of each parameter.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pytest_gpuperf.device.arguments import Structure, array_facts
from pytest_gpuperf.device.device_errors import LaunchError, LoadError
from pytest_gpuperf.device.interface import Dim3
from pytest_gpuperf.device.launch import Launch, MachineCode
from pytest_gpuperf.device.launch_attributes import LaunchAttributes

REMEDY = "Give gpuperf the function itself; its time is then compared without pairs"
_STREAM = "It has to enqueue on gpu.stream alone, and neither wait nor use the default stream"


class CapturedKernel(NamedTuple):
    """One kernel that a call enqueued."""

    symbol: str
    grid: Dim3
    block: Dim3
    dynamic_shared_bytes: int
    attributes: LaunchAttributes
    parameters: tuple[bytes, ...]


class Captured(NamedTuple):
    """All that a call enqueued."""

    kernels: tuple[CapturedKernel, ...]
    others: int
    """Copies, fills and the like."""


def launch_as_called(kernel: MachineCode, call: Callable[..., Any], args: Sequence[Any]) -> Launch:
    """A launch of ``kernel`` as ``call(*args)`` launches it, which is run once for that and executes nothing.

    Raises ``LaunchError`` unless that enqueues this kernel and nothing else, and ``DeviceNeeded`` without a GPU.
    """
    found = kernel.device.capture(lambda: call(*args))
    binary = kernel.binary
    if len(found.kernels) != 1 or found.others:
        names = ", ".join(one.symbol for one in found.kernels) or "no kernel"
        others = f" and {found.others} other operations" if found.others else ""
        remedy = REMEDY if found.kernels else _STREAM
        raise LaunchError(f"{kernel.name}: the call enqueued {names}{others} on gpu.stream, not one kernel: {remedy}")
    (one,) = found.kernels
    sizes = [len(content) for content in one.parameters]
    if one.symbol != binary.symbol or sizes != [parameter.size for parameter in binary.parameters]:
        raise LaunchError(
            f"{kernel.name}: the call launched {one.symbol} with parameters of {sizes} bytes, which is not the kernel "
            f"{binary.symbol} that was handed over: hand over what the call launches"
        )
    entries = (f"as called({', '.join(map(_described, args))})", *(["as called"] * len(sizes)))
    values = [Structure(*both, kept=(call, args)) for both in zip(one.parameters, entries, strict=False)]
    return Launch(kernel, one.grid, one.block, values, one.dynamic_shared_bytes, one.attributes)


def capture_call(driver: Any, stream: int, call: Callable[[], Any]) -> Captured:
    """What ``call`` enqueues on ``stream``; ``driver`` is ``cuda.bindings.driver``, or None.

    Relaxed capture, so that the call may load modules.  Raises ``LaunchError`` if the call cannot be captured.
    """
    if driver is None:
        raise LoadError("capturing a launch needs the driver's binding: pip install cuda-bindings")
    handle = driver.CUstream(stream)
    _checked(driver, driver.cuStreamBeginCapture(handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    try:
        try:
            call()
        finally:  # a stream that is left in capture takes no work any more
            status, graph = driver.cuStreamEndCapture(handle)
    except Exception as problem:  # whatever the library raises
        raise LaunchError(f"the call cannot be captured: {problem}. {_STREAM}") from problem
    if status != driver.CUresult.CUDA_SUCCESS:
        raise LaunchError(f"the call cannot be captured: {status.name}. {_STREAM}")
    try:
        return _read(driver, graph)
    finally:
        driver.cuGraphDestroy(graph)


def _read(driver: Any, graph: Any) -> Captured:
    _, count = _checked(driver, driver.cuGraphGetNodes(graph))
    nodes = _checked(driver, driver.cuGraphGetNodes(graph, count))[0] if count else []
    kernel_type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL
    kernels = [node for node in nodes if _checked(driver, driver.cuGraphNodeGetType(node))[0] == kernel_type]
    return Captured(tuple(_kernel(driver, node) for node in kernels), len(nodes) - len(kernels))


def _kernel(driver: Any, node: Any) -> CapturedKernel:
    (given,) = _checked(driver, driver.cuGraphKernelNodeGetParams(node))
    function = given.func
    if not int(function):
        (function,) = _checked(driver, driver.cuKernelGetFunction(given.kern))
    (name,) = _checked(driver, driver.cuFuncGetName(function))
    symbol = name.decode()
    sizes = tuple(_sizes(driver, function))
    if sizes and not given.kernelParams:
        raise LaunchError(f"{symbol}: its parameters were passed in one buffer, which is not taken apart. {REMEDY}")
    addresses = (ctypes.c_void_p * len(sizes)).from_address(given.kernelParams) if sizes else ()
    return CapturedKernel(
        symbol, (given.gridDimX, given.gridDimY, given.gridDimZ), (given.blockDimX, given.blockDimY, given.blockDimZ),
        given.sharedMemBytes, _attributes(driver, node),
        tuple(ctypes.string_at(address or 0, size) for address, size in zip(addresses, sizes, strict=True)),
    )  # fmt: skip


def _sizes(driver: Any, function: Any) -> Iterator[int]:
    """Bytes of each parameter; the driver says which is the last one by refusing the next."""
    number = 0
    while (found := driver.cuFuncGetParamInfo(function, number))[0] == driver.CUresult.CUDA_SUCCESS:
        yield int(found[2])
        number += 1


def _attributes(driver: Any, node: Any) -> LaunchAttributes:
    kinds = driver.CUkernelNodeAttrID
    cooperative, cluster = (
        _checked(driver, driver.cuGraphKernelNodeGetAttribute(node, kind))[0]
        for kind in (kinds.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, kinds.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
    )
    size = cluster.clusterDim
    blocks = (int(size.x), int(size.y), int(size.z))
    return LaunchAttributes(bool(cooperative.cooperative), blocks if min(blocks) > 0 and max(blocks) > 1 else None)


def _checked(driver: Any, answer: tuple[Any, ...]) -> tuple[Any, ...]:
    """What the driver returned behind its status.  Raises ``LaunchError``."""
    status, *values = answer
    if status != driver.CUresult.CUDA_SUCCESS:
        raise LaunchError(f"the driver refuses to capture a launch: {status.name}. {REMEDY}")
    return tuple(values)


def _described(value: Any) -> str:
    """An argument of the call, as the identity has it: no addresses."""
    facts = array_facts(value)
    if facts is not None:
        return facts.entry
    return repr(value) if isinstance(value, bool | int | float | str | np.generic) else type(value).__name__
