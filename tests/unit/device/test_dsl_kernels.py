"""Kernels of the CuTe DSL, whose launches a stand-in for the driver captures, and of cuTile, by its convention."""

from __future__ import annotations

import ctypes
import enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from device_samples import DeviceArray, NotingDevice
from dsl_samples import RecordedSignature, cute_compiled, install_recorded_cutile

from pytest_gpuperf.compile.adapters.cute import read_cute
from pytest_gpuperf.compile.adapters.cutile import read_cutile
from pytest_gpuperf.compile.adapters.handed import binary_for
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.driver_calls import CapturedKernel, capture_call
from pytest_gpuperf.device.interface import Configuration, LaunchAttributes
from pytest_gpuperf.device.other_compilers import CuteKernel, CutileKernel
from pytest_gpuperf.device.placeholder import PlaceholderDevice

SYMBOL = "kernel_cutlass_add_kernel_tensorptrf32gmemalign16o1_tensorptrf32gmemalign16o1_tensorptrf32gmemalign16o1__0"
CONTENTS = (bytes(range(16)), bytes(16), b"\xff" * 16, b"\x00\x10\x00\x00")
ADDED = CapturedKernel(SYMBOL, Configuration((16, 1, 1), (256, 1, 1)), CONTENTS)
CLUSTERED = CapturedKernel(
    "work", Configuration((8, 2, 1), (64, 1, 2), 4224, LaunchAttributes(True, (2, 1, 1))), (b"12345678",)
)
ON_STREAM = "It has to enqueue this one kernel on gpu.stream, and neither wait nor use the default stream"


class CUresult(enum.Enum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1


class CUstreamCaptureMode(enum.Enum):
    CU_STREAM_CAPTURE_MODE_RELAXED = 2


class CUgraphNodeType(enum.Enum):
    CU_GRAPH_NODE_TYPE_KERNEL = 0
    CU_GRAPH_NODE_TYPE_MEMSET = 2


class CUkernelNodeAttrID(enum.Enum):
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4


ENUMS = (CUresult, CUstreamCaptureMode, CUgraphNodeType, CUkernelNodeAttrID)
OK = CUresult.CUDA_SUCCESS


class CapturingDriver:
    """The part of ``cuda.bindings.driver`` that a capture uses.  Nodes are what ``call`` appended to ``enqueued``."""

    CUresult, CUstreamCaptureMode, CUgraphNodeType, CUkernelNodeAttrID = ENUMS

    def __init__(self) -> None:
        self.enqueued: list[Any] = []
        self.said: list[str] = []
        self.by_handle = False
        """Whether a kernel is known by its library's handle alone."""
        self._alive: list[Any] = []

        answers = {
            "cuStreamEndCapture": lambda stream: (OK, self.said.append(f"end {stream}") or "graph"),
            "cuGraphGetNodes": lambda graph, count=0: (OK, self.enqueued[:count], len(self.enqueued)),
            "cuGraphNodeGetType": lambda node: (OK, CUgraphNodeType(0 if isinstance(node, CapturedKernel) else 2)),
            "cuKernelGetFunction": lambda kernel: (OK, kernel - 1),
            "cuFuncGetName": lambda function: (OK, {5: self.node.symbol.encode()}[function]),
            "CUstream": int,
        }
        vars(self).update(answers)

    def cuStreamBeginCapture(self, stream: int, mode: CUstreamCaptureMode) -> tuple[Any, ...]:
        self.said.append(f"begin {stream} {mode.value}")
        return (OK,)

    def cuGraphDestroy(self, graph: str) -> None:
        self.said.append(f"destroy {graph}")

    def cuGraphKernelNodeGetParams(self, node: CapturedKernel) -> tuple[Any, ...]:
        buffers = [ctypes.create_string_buffer(content, len(content)) for content in node.parameters]
        addresses = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
        self._alive += [buffers, addresses]
        self.node = node
        (x, y, z), (u, v, w) = node.launch.grid, node.launch.block
        return OK, SimpleNamespace(
            func=0 if self.by_handle else 5, kern=6, gridDimX=x, gridDimY=y, gridDimZ=z, blockDimX=u, blockDimY=v,
            blockDimZ=w, sharedMemBytes=node.launch.dynamic_shared_bytes, kernelParams=ctypes.addressof(addresses),
        )  # fmt: skip

    def cuFuncGetParamInfo(self, function: int, number: int) -> tuple[Any, ...]:
        contents = self.node.parameters
        return (OK, 0, len(contents[number])) if number < len(contents) else (CUresult.CUDA_ERROR_INVALID_VALUE, 0, 0)

    def cuGraphKernelNodeGetAttribute(self, node: CapturedKernel, kind: CUkernelNodeAttrID) -> tuple[Any, ...]:
        cooperative, (x, y, z) = node.launch.attributes.cooperative, node.launch.attributes.cluster or (0, 0, 0)
        return OK, SimpleNamespace(cooperative=int(cooperative), clusterDim=SimpleNamespace(x=x, y=y, z=z))


@pytest.mark.parametrize("by_handle", [False, True])
@pytest.mark.parametrize("kernel", [CLUSTERED, ADDED])
def test_a_capture_tells_all_of_a_launch_and_leaves_no_graph(kernel: CapturedKernel, by_handle: bool) -> None:
    driver = CapturingDriver()
    driver.by_handle = by_handle
    assert capture_call(driver, 7, lambda: driver.enqueued.append(kernel)) == kernel
    assert driver.said == ["begin 7 2", "end 7", "destroy graph"]


def test_a_call_that_fails_ends_the_capture_and_says_what_a_call_may_do() -> None:
    driver = CapturingDriver()

    def waits() -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.raises(LaunchError, match=rf"cannot be captured: operation not permitted .* capturing\. {ON_STREAM}"):
        capture_call(driver, 7, waits)
    assert driver.said == ["begin 7 2", "end 7"]


def test_the_driver_s_binding_has_what_is_called() -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    for name in [name for name in dir(CapturingDriver()) if name.startswith(("cu", "CU"))]:
        assert hasattr(driver, name), name
    for kind in ENUMS:
        for member in kind:
            assert int(getattr(getattr(driver, kind.__name__), member.name)) == member.value
    given = driver.CUDA_KERNEL_NODE_PARAMS()
    assert (int(given.func), int(given.kern), given.kernelParams, given.gridDimX, given.sharedMemBytes) == (0,) * 5


# --- launches ------------------------------------------------------------------------------------


class CapturingDevice(PlaceholderDevice):
    """Captures by the stand-in driver."""

    def __init__(self, enqueued: list[Any]) -> None:
        super().__init__()
        self.driver = CapturingDriver()
        self.driver.enqueued = enqueued

    def capture(self, call: Any) -> CapturedKernel:
        return capture_call(self.driver, 7, call)


def cute_kernel(*enqueued: Any) -> CuteKernel:
    handed = read_cute(cute_compiled("cute-add-4.8.1-sm_90a"))
    binaries = {arch: binary_for(handed, arch) for arch in handed.cubins}
    return CuteKernel(handed, binaries, [*binaries], "sm_90", device=CapturingDevice([*enqueued]))


def test_the_identity_has_what_was_given_to_the_call_and_no_bytes() -> None:
    x = DeviceArray(np.zeros(4096, "float32"))
    identity = cute_kernel(ADDED).launch(lambda *_: None, (x, 4096, 2.5, "fast", object())).identity()
    described = "as called(float32[4096] align=256, 4096, 2.5, 'fast', object)"
    assert identity.arguments == (described, "as called", "as called", "as called")
    assert identity.launch == "grid=(16, 1, 1) block=(256, 1, 1) shared=0"


@pytest.mark.parametrize(
    ("enqueued", "words"),
    [
        ([], f"the call enqueued 0 kernels, copies and the like on gpu.stream. {ON_STREAM}"),
        ([ADDED, "fill"], "the call enqueued 2 kernels"),
        (["fill"], "the call enqueued 1 kernels, copies"),
        ([ADDED._replace(symbol="other")], f"add_kernel: the call launched other, not the kernel {SYMBOL}"),
        ([ADDED._replace(parameters=CONTENTS[:3])], r"add_kernel takes 4 arguments .*, and 3 were given"),
    ],
)
def test_a_call_that_is_not_one_launch_of_the_kernel_is_refused(enqueued: list[Any], words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        cute_kernel(*enqueued).launch(lambda: None)


# --- cuTile's calling convention -------------------------------------------------------------------


def cutile_kernel(name: str, device: PlaceholderDevice | None = None, changes: Any = None) -> CutileKernel:
    install_recorded_cutile()
    signature = RecordedSignature(f"cutile-{name}-1.7.0")
    for field, value in (changes or {}).items():
        setattr(signature.parameters[0], field, value)
    handed = read_cutile(SimpleNamespace(), signature, ["sm_90"])
    return CutileKernel(
        handed, {"sm_90": binary_for(handed, "sm_90")}, ["sm_90"], "sm_90", device=device or PlaceholderDevice()
    )


def array(*shape: int, dtype: str = "float32", address: int = 0x7F0000000200) -> DeviceArray:
    return DeviceArray(np.zeros(shape, dtype), address)


def test_arrays_are_address_shape_and_strides_and_constants_are_left_out() -> None:
    device = NotingDevice()
    x, out = array(64, 1000), array(64, 1024, address=0x7F0000100000)
    kernel = cutile_kernel("softmax", device, {"stride_divisible_by": [8, 1]})
    launch = kernel.launch(64, (x, out, 1024))
    launch()
    (grid, block, shared, _), values = device.log[-1][1:]
    assert (grid, block, shared) == ((64, 1, 1), (256, 1, 1), 0)
    assert [int(value) for value in values] == [x.data.ptr, 64, 1000, 1000, 1, out.data.ptr, 64, 1024, 1024, 1]
    assert [value.dtype.name for value in values[1:5]] == ["int32"] * 4


def test_a_view_with_gaps_goes_by_its_address_and_its_strides() -> None:
    device = NotingDevice()
    whole = np.zeros((64, 2048), "float32")
    view = DeviceArray(whole[:, :1024], 0x7F0000000200)
    launch = cutile_kernel("softmax", device).launch(64, (view, array(64, 1024), 1024))
    launch()
    values = device.log[-1][2]
    assert [int(value) for value in values[:5]] == [0x7F0000000200, 64, 1024, 2048, 1]
    assert launch.identity().arguments[:5] == ("address align=256", "int32=64", "int32=1024", "int32=2048", "int32=1")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((array(64, 1024),), r"softmax takes 3 arguments \(1, 2, 3\), and 1 were given"),
        ((array(64, 1024), array(64, 1024), 512), "argument 3 is 512, and 1024 was compiled in: compile it with"),
        ((array(64, 1024), array(64, 1024), array(4)), "argument 3 is an array, and 1024 was compiled in"),
        ((3, array(64, 1024), 1024), "softmax takes 10 arguments .* and 6 were given"),
        ((array(1024), array(64, 1024), 1024), "softmax takes 10 arguments .* and 8 were given"),
        ((array(64, 1024, dtype="float64"), array(64, 1024), 1024), r"an array of float64, .* declares float\*"),
        (array(64, 1024), "args takes a tuple of arguments"),
    ],
)
def test_arguments_that_the_kernel_was_not_compiled_for_are_refused(args: Any, words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        cutile_kernel("softmax").launch(64, args)
