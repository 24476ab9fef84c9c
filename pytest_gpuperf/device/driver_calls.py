"""Calls of the driver that CuPy has none for: captured and extended launches, and lines that persist in the L2.

``driver`` is ``cuda.bindings.driver``.  A kernel's node in a captured graph (CUDA Driver API,
"Graph Management") tells its launch and the bytes of each parameter; nothing is executed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pytest_gpuperf.compile.adapters.handed import TensorMap
from pytest_gpuperf.device.device_errors import LaunchError, LoadError
from pytest_gpuperf.device.interface import TENSOR_MAP_BYTES, Configuration, LaunchAttributes

REMEDY = (
    "It may only enqueue this one kernel on gpu.stream, without waiting and without the default stream. Or pass "
    "gpuperf the function itself; it is then timed as a callable"
)


class CapturedKernel(NamedTuple):
    """A kernel that a call enqueued."""

    symbol: str
    launch: Configuration
    parameters: tuple[bytes, ...]


def capture_call(driver: Any, stream: int, call: Callable[[], Any]) -> CapturedKernel:
    """The one kernel that ``call`` enqueues on ``stream``.

    Relaxed capture, so that the call may load modules.  Raises ``LaunchError`` if the call cannot be captured, or
    enqueues anything else.
    """
    handle = driver.CUstream(stream)
    _checked(driver, driver.cuStreamBeginCapture(handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    try:
        call()
    except Exception as problem:  # whatever the library raises
        raise LaunchError(f"the call cannot be captured: {problem}. {REMEDY}") from problem
    finally:  # a stream that is left in capture takes no work any more
        ended = driver.cuStreamEndCapture(handle)
    (graph,) = _checked(driver, ended)
    try:
        return _read(driver, graph)
    finally:
        driver.cuGraphDestroy(graph)


def _read(driver: Any, graph: Any) -> CapturedKernel:
    _, count = _checked(driver, driver.cuGraphGetNodes(graph))
    nodes = _checked(driver, driver.cuGraphGetNodes(graph, count))[0] if count else []
    kernel = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL
    if [_checked(driver, driver.cuGraphNodeGetType(node))[0] for node in nodes] != [kernel]:
        raise LaunchError(f"the call enqueued {count} kernels, copies and the like on gpu.stream. {REMEDY}")
    (given,) = _checked(driver, driver.cuGraphKernelNodeGetParams(nodes[0]))
    function = given.func if int(given.func) else _checked(driver, driver.cuKernelGetFunction(given.kern))[0]
    (name,) = _checked(driver, driver.cuFuncGetName(function))
    sizes = tuple(_sizes(driver, function))
    if sizes and not given.kernelParams:  # passed in one buffer
        raise LaunchError(f"{name.decode()}: the layout of its parameters is not known. {REMEDY}")
    addresses = (ctypes.c_void_p * len(sizes)).from_address(given.kernelParams) if sizes else ()
    grid, block = ((tuple(getattr(given, f"{what}Dim{axis}") for axis in "XYZ")) for what in ("grid", "block"))
    return CapturedKernel(
        name.decode(), Configuration(grid, block, given.sharedMemBytes, _attributes(driver, nodes[0])),
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
        raise LaunchError(f"the call cannot be captured: {status.name}. {REMEDY}")
    return tuple(values)


def launch_extended(driver: Any, function: int, stream: int, launch: Configuration, args: Sequence[Any]) -> None:
    """Enqueue ``function``, a ``CUfunction``, on ``stream``; ``args`` are NumPy scalars and arrays of one element.

    Raises ``LoadError`` if the driver refuses the launch.
    """
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = launch.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
    config.sharedMemBytes = launch.dynamic_shared_bytes
    config.hStream = driver.CUstream(stream)
    made = _launch_attributes(driver, launch.attributes)
    config.attrs, config.numAttrs = made, len(made)
    values = [np.array(value) for value in args]  # alive until the driver has copied them
    addresses = np.array([value.ctypes.data for value in values], dtype=np.uint64)
    (status,) = driver.cuLaunchKernelEx(config, driver.CUfunction(function), addresses.ctypes.data, 0)
    if status != driver.CUresult.CUDA_SUCCESS:
        what = f"grid={launch.grid} block={launch.block}{launch.attributes.entry}"
        raise LoadError(f"the driver refuses the launch of {what}: {status.name}")


def _launch_attributes(driver: Any, given: LaunchAttributes) -> list[Any]:
    kinds, made = driver.CUlaunchAttributeID, list[Any]()

    def added(kind: Any) -> Any:
        made.append(driver.CUlaunchAttribute())
        made[-1].id = kind
        return made[-1].value

    if given.cooperative:
        added(kinds.CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1
    if given.cluster is not None:
        size = added(kinds.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim
        size.x, size.y, size.z = given.cluster
    if given.pdl:
        added(kinds.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION).programmaticStreamSerializationAllowed = 1
    return made


def encode_tensor_map(
    form: TensorMap, address: int | None, shape: Sequence[int], strides: Sequence[int], *, nan: bool
) -> bytes:
    """See ``Device``; by ``cuTensorMapEncodeTiled``, which wants its result aligned, as the binding's is not."""
    room = ctypes.create_string_buffer(TENSOR_MAP_BYTES + 64)
    start, rank = -ctypes.addressof(room) % 64, len(shape)
    lengths = [*shape[:-1], shape[-1] * (2 if form.spread_fp4 else 1)][::-1]
    steps = [stride * form.element_bytes for stride in strides[-2::-1]]
    no_interleave, promoted_to_128_bytes = 0, 2
    status = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
        ctypes.c_void_p(ctypes.addressof(room) + start), form.element, rank, ctypes.c_void_p(address),
        (ctypes.c_uint64 * rank)(*lengths), (ctypes.c_uint64 * rank)(*steps),
        (ctypes.c_uint32 * rank)(*form.box[::-1]), (ctypes.c_uint32 * rank)(*[1] * rank),
        no_interleave, form.swizzle, promoted_to_128_bytes, int(nan),
    )  # fmt: skip
    if status:
        raise LaunchError(
            f"the driver takes no tensor descriptor of shape {tuple(shape)} and strides {tuple(strides)} in blocks of "
            f"{form.box}: CUDA error {status}. The address and strides of an array are multiples of 16 bytes"
        )
    return room.raw[start : start + TENSOR_MAP_BYTES]


def has_persisting_l2(driver: Any) -> bool:
    """Whether some of this context's L2 is set aside for lines that no flush evicts, by a program or by the driver.

    CUDA C++ Programming Guide, "Device Memory L2 Access Management".  On an H100 the driver 580.159.04 sets 9.4 MiB of
    50 aside by itself, so that any kernel with a hint such as ``evict_last`` may leave such lines.
    """
    failed, set_aside = driver.cuCtxGetLimit(driver.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
    return not int(failed) and int(set_aside) > 0
