"""Launches of another library, out of a graph that a stand-in for the driver captured."""

from __future__ import annotations

import ctypes
import enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from device_samples import DeviceArray
from dsl_samples import cute_compiled

from pytest_gpuperf.compile.adapters.cute import read_cute
from pytest_gpuperf.compile.adapters.handed import Handed, binary_for
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.driver_calls import CapturedKernel, capture_call
from pytest_gpuperf.device.interface import Configuration, LaunchAttributes, LoadedKernel
from pytest_gpuperf.device.other_compilers import CuteKernel
from pytest_gpuperf.device.placeholder import PlaceholderDevice
from pytest_gpuperf.model.evidence import KernelBinary

SYMBOL = "kernel_cutlass_add_kernel_tensorptrf32gmemalign16o1_tensorptrf32gmemalign16o1_tensorptrf32gmemalign16o1__0"
CONTENTS = (bytes(range(16)), bytes(16), b"\xff" * 16, b"\x00\x10\x00\x00")
ADDED = CapturedKernel(SYMBOL, Configuration((16, 1, 1), (256, 1, 1)), CONTENTS)
ON_STREAM = "It has to enqueue this one kernel on gpu.stream, and neither wait nor use the default stream"


class Result(enum.Enum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901


class Mode(enum.Enum):
    CU_STREAM_CAPTURE_MODE_RELAXED = 2


class NodeType(enum.Enum):
    CU_GRAPH_NODE_TYPE_KERNEL = 0
    CU_GRAPH_NODE_TYPE_MEMSET = 2


class AttributeKind(enum.Enum):
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4


class CapturingDriver:
    """The part of ``cuda.bindings.driver`` that a capture uses.  Nodes are what ``call`` appended to ``enqueued``."""

    CUresult, CUstreamCaptureMode, CUgraphNodeType, CUkernelNodeAttrID = Result, Mode, NodeType, AttributeKind

    def __init__(self) -> None:
        self.enqueued: list[Any] = []
        self.said: list[str] = []
        self.ends_with = Result.CUDA_SUCCESS
        self._alive: list[Any] = []

    def CUstream(self, pointer: int) -> int:
        return pointer

    def cuStreamBeginCapture(self, stream: int, mode: Mode) -> tuple[Result]:
        self.said.append(f"begin {stream} {mode.value}")
        return (Result.CUDA_SUCCESS,)

    def cuStreamEndCapture(self, stream: int) -> tuple[Result, str]:
        self.said.append(f"end {stream}")
        return self.ends_with, "graph"

    def cuGraphDestroy(self, graph: str) -> tuple[Result]:
        self.said.append(f"destroy {graph}")
        return (Result.CUDA_SUCCESS,)

    def cuGraphGetNodes(self, graph: str, count: int = 0) -> tuple[Result, list[Any], int]:
        return Result.CUDA_SUCCESS, self.enqueued[:count], len(self.enqueued)

    def cuGraphNodeGetType(self, node: Any) -> tuple[Result, NodeType]:
        kernel = isinstance(node, CapturedKernel)
        return Result.CUDA_SUCCESS, NodeType.CU_GRAPH_NODE_TYPE_KERNEL if kernel else NodeType.CU_GRAPH_NODE_TYPE_MEMSET

    def cuGraphKernelNodeGetParams(self, node: CapturedKernel) -> tuple[Result, Any]:
        buffers = [ctypes.create_string_buffer(content, len(content)) for content in node.parameters]
        addresses = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
        self._alive += [buffers, addresses]
        self.node = node
        return Result.CUDA_SUCCESS, SimpleNamespace(
            func=5, kern=0, **dict(zip(("gridDimX", "gridDimY", "gridDimZ"), node.launch.grid, strict=True)),
            **dict(zip(("blockDimX", "blockDimY", "blockDimZ"), node.launch.block, strict=True)),
            sharedMemBytes=node.launch.dynamic_shared_bytes, kernelParams=ctypes.addressof(addresses) if buffers else 0,
        )  # fmt: skip

    def cuKernelGetFunction(self, kernel: int) -> tuple[Result, int]:
        return Result.CUDA_SUCCESS, kernel - 1

    def cuFuncGetName(self, function: int) -> tuple[Result, bytes]:
        assert function == 5
        return Result.CUDA_SUCCESS, self.node.symbol.encode()

    def cuFuncGetParamInfo(self, function: int, number: int) -> tuple[Result, int, int]:
        contents = self.node.parameters
        if number >= len(contents):
            return Result.CUDA_ERROR_INVALID_VALUE, 0, 0
        return Result.CUDA_SUCCESS, 0, len(contents[number])

    def cuGraphKernelNodeGetAttribute(self, node: CapturedKernel, kind: AttributeKind) -> tuple[Result, Any]:
        x, y, z = node.launch.attributes.cluster or (0, 0, 0)
        cooperative = int(node.launch.attributes.cooperative)
        return Result.CUDA_SUCCESS, SimpleNamespace(cooperative=cooperative, clusterDim=SimpleNamespace(x=x, y=y, z=z))


class CapturingDevice(PlaceholderDevice):
    """Captures by the stand-in driver, and notes what is launched."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = CapturingDriver()
        self.launched: list[tuple[Any, ...]] = []

    def capture(self, call: Any) -> CapturedKernel:
        return capture_call(self.driver, 7, call)

    def load(self, binary: KernelBinary) -> LoadedKernel:
        return lambda *launch: self.launched.append(launch)


def cute_kernel(device: PlaceholderDevice) -> CuteKernel:
    return cute_of(read_cute(cute_compiled("cute-add-4.8.1-sm_90a")), device)


def cute_of(handed: Handed, device: PlaceholderDevice, native: str | None = "sm_90") -> CuteKernel:
    binaries = {arch: binary_for(handed, arch) for arch in handed.cubins}
    return CuteKernel(handed, binaries, [*binaries], native, device=device)


# --- capturing -----------------------------------------------------------------------------------


def test_a_capture_tells_all_of_a_launch_and_leaves_no_graph() -> None:
    driver = CapturingDriver()
    launch = Configuration((8, 2, 1), (64, 1, 2), 4224, LaunchAttributes(True, (2, 1, 1)))
    clustered = CapturedKernel("work", launch, (b"12345678",))
    found = capture_call(driver, 7, lambda: driver.enqueued.append(clustered))
    assert found == clustered
    assert driver.said == ["begin 7 2", "end 7", "destroy graph"]


def test_a_kernel_that_is_known_by_its_library_s_handle_is_read_too() -> None:
    driver = CapturingDriver()
    params = driver.cuGraphKernelNodeGetParams

    def by_handle(node: CapturedKernel) -> tuple[Result, Any]:
        status, given = params(node)
        given.func, given.kern = 0, 6
        return status, given

    driver.cuGraphKernelNodeGetParams = by_handle  # type: ignore[method-assign]
    assert capture_call(driver, 7, lambda: driver.enqueued.append(ADDED)) == ADDED


def test_a_call_that_fails_ends_the_capture_and_says_what_a_call_may_do() -> None:
    driver = CapturingDriver()

    def waits() -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.raises(LaunchError, match=rf"cannot be captured: operation not permitted .* capturing\. {ON_STREAM}"):
        capture_call(driver, 7, waits)
    assert driver.said == ["begin 7 2", "end 7"]


def test_the_driver_s_binding_has_what_is_called() -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    for name in [name for name in dir(CapturingDriver) if name.startswith(("cu", "CU"))]:
        assert hasattr(driver, name), name
    for kind in (Mode, NodeType, AttributeKind):
        real = {"Mode": "CUstreamCaptureMode", "NodeType": "CUgraphNodeType", "AttributeKind": "CUkernelNodeAttrID"}
        for member in kind:
            assert int(getattr(getattr(driver, real[kind.__name__]), member.name)) == member.value
    given = driver.CUDA_KERNEL_NODE_PARAMS()
    assert (int(given.func), int(given.kern), given.kernelParams, given.gridDimX, given.sharedMemBytes) == (0,) * 5


# --- launches ------------------------------------------------------------------------------------


def test_the_identity_has_what_was_given_to_the_call_and_no_bytes() -> None:
    device = CapturingDevice()
    device.driver.enqueued.append(ADDED)
    x = DeviceArray(np.zeros(4096, "float32"))
    launch = cute_kernel(device).launch(lambda *_: None, (x, 4096, 2.5, "fast", object()))
    described = "as called(float32[4096] align=256, 4096, 2.5, 'fast', object)"
    assert launch.identity().arguments == (described, "as called", "as called", "as called")
    assert launch.identity().launch == "grid=(16, 1, 1) block=(256, 1, 1) shared=0"


@pytest.mark.parametrize(
    ("enqueued", "words"),
    [
        ([], f"the call enqueued 0 kernels, copies and the like on gpu.stream. {ON_STREAM}"),
        ([ADDED, ADDED], "the call enqueued 2 kernels"),
        ([ADDED, "fill"], "the call enqueued 2 kernels"),
        (["fill"], "the call enqueued 1 kernels, copies"),
        ([ADDED._replace(symbol="other")], f"add_kernel: the call launched other, not the kernel {SYMBOL}"),
        ([ADDED._replace(parameters=CONTENTS[:3])], r"add_kernel takes 4 arguments .*, and 3 were given"),
    ],
)
def test_a_call_that_is_not_one_launch_of_the_kernel_is_refused(enqueued: list[Any], words: str) -> None:
    device = CapturingDevice()
    device.driver.enqueued = enqueued
    with pytest.raises(LaunchError, match=words):
        cute_kernel(device).launch(lambda: None)


# --- evidence of several architectures -----------------------------------------------------------
