"""Kernels that other compilers have compiled: what is read, how they are launched or refused.  CuPy's are sources.

Launches of the CuTe DSL are captured by a stand-in for the driver.
"""

from __future__ import annotations

import ctypes
import math
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as real
from device_samples import DeviceArray, NotingDevice, device_array
from handed_samples import (
    LATEST,
    NARROW,
    Config,
    NumbaCuda,
    NumbaType,
    RecordedSignature,
    compiled,
    cute_compiled,
    install_recorded_cutile,
    module,
    raw,
)

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.compile.adapters import handed
from pytest_gpuperf.compile.adapters import numba as numba_adapter
from pytest_gpuperf.compile.adapters.cupy import read_cupy
from pytest_gpuperf.compile.adapters.cute import read_cute
from pytest_gpuperf.compile.adapters.cutile import read_cutile
from pytest_gpuperf.compile.adapters.handed import OWN_ARCH, Handed, TensorMap, binary_for
from pytest_gpuperf.compile.adapters.numba import read_numba
from pytest_gpuperf.compile.adapters.triton import read_triton
from pytest_gpuperf.compile.compile_errors import UnsupportedKernel
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device.arguments import recorded_arguments
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.driver_calls import CapturedKernel, capture_call
from pytest_gpuperf.device.interface import Configuration, LaunchAttributes
from pytest_gpuperf.device.other_compilers import CuteKernel, CutileKernel, NumbaKernel, TritonKernel
from pytest_gpuperf.device.placeholder import PlaceholderDevice

LINE, SQUARE = device_array(4096), device_array(64, 1024)
UNPAIRED = "Give gpuperf a function that launches it with {}; it is then timed as a callable"


@pytest.fixture
def numba(monkeypatch: pytest.MonkeyPatch) -> NumbaCuda:
    numba = NumbaCuda(LATEST)
    monkeypatch.setitem(sys.modules, "numba.cuda", numba)
    monkeypatch.setattr(handed.importlib.metadata, "version", lambda _: numba.facts["version"])
    return numba


def made(kind: Any, one: Handed, arch: str = "sm_90", device: Any = None) -> Any:
    return kind(one, {"sm_90": binary_for(one, arch)}, ["sm_90"], "sm_90", device=device or NotingDevice())


def of_numba(numba: NumbaCuda, name: str, **options: Any) -> NumbaKernel:
    one = read_numba(numba.dispatcher(name, **options), numba.signature(name), ["sm_90"])
    return made(NumbaKernel, one)  # type: ignore[no-any-return]


def of_triton(stem: str) -> TritonKernel:
    return made(TritonKernel, read_triton(compiled(stem)), OWN_ARCH)  # type: ignore[no-any-return]


def of_cutile(name: str, changes: Any = None) -> CutileKernel:
    install_recorded_cutile()
    signature = RecordedSignature(f"cutile-{name}-1.7.0")
    vars(signature.parameters[0]).update(changes or {})
    return made(CutileKernel, read_cutile(SimpleNamespace(), signature, ["sm_90"]))  # type: ignore[no-any-return]


# --- what is read ----------------------------------------------------------------------------------


def test_parameters_of_numba_are_named_and_typed(numba: NumbaCuda) -> None:
    binary = of_numba(numba, "axpy").binary
    of_array = ["x.meminfo", "x.parent", "x.size", "x.itemsize", "x", "x.shape[0]", "x.strides[0]"]
    assert [parameter.name for parameter in binary.parameters][:8] == ["a", *of_array]
    assert [parameter.type for parameter in binary.parameters][:7] == [
        "float", "void*", "void*", "long long", "long long", "float*", "long long"
    ]  # fmt: skip
    assert [parameter.size for parameter in binary.parameters] == [4, *[8] * 14]
    assert (binary.name, binary.arch, bool(binary.source_hash)) == ("axpy", "sm_90", True)
    assert binary.toolchain.startswith(f"{numba.facts['package']} {numba.facts['version']}, ptxas ")
    binary = of_numba(numba, "transpose").binary
    last = [(parameter.name, parameter.type, parameter.size) for parameter in binary.parameters[-4:]]
    assert last == [("n", "int", 4), ("factor.real", "float", 4), ("factor.imag", "float", 4), ("negate", "bool", 1)]
    assert (binary.profile.shared_bytes, binary.profile.spill_bytes, binary.profile.barriers) == (16 * 17 * 4, 0, 1)


SCALE, KERNELS = 2.0, ("axpy", "transpose")


def scaled(value: float) -> float:
    return value * SCALE


device_function = SimpleNamespace(py_func=scaled, __module__=__name__)


def axpy(a: Any, x: Any, y: Any) -> None:
    y[0] += device_function(a * x[0]) * math.tau


def test_source_of_numba_has_functions_and_options(numba: NumbaCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the version of Numba: what another one makes of the same source is compared by what costs by itself."""

    def source(**options: Any) -> str:
        return read_numba(numba.dispatcher("axpy", function=axpy, **options), numba.signature("axpy"), ["sm_90"]).source

    before = source()
    numba.facts = {**numba.facts, "version": "0.22.2"}
    assert source() == source(opt=True) == before
    assert source(max_registers=32) != before
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert source() != before
    monkeypatch.setattr(math, "tau", 6.5, raising=True)
    assert "'tau': 6.5" in source(), "of a module"
    in_no_file = [read_numba(numba.dispatcher(name), numba.signature(name), ["sm_90"]).source for name in KERNELS]
    assert len({*in_no_file, before}) == 3


def test_source_of_triton_has_function_options_and_attributes() -> None:
    """Not the version of Triton."""
    usual = {"triton_version": "9"}, {"num_warps": 8}, {"num_stages": 4}
    kernels = [compiled("add-3.6.0"), *(compiled("add-3.6.0", **options) for options in usual), compiled("scale-3.6.0")]
    kernels.append(compiled("add-3.6.0"))
    kernels[-1].src.attrs = {(0,): [["tt.divisibility", 32]]}
    one, same, *others = (binary_for(read_triton(kernel), OWN_ARCH).source_hash for kernel in kernels)
    assert one == same
    assert len({one, *others}) == 5


def test_numba_compiles_with_the_decorator_s_options(numba: NumbaCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    linked: list[tuple[Any, ...]] = []
    link = numba_adapter.link
    monkeypatch.setattr(numba_adapter, "link", lambda code, *more: linked.append(more) or link(code, *more))
    archs = ["sm_80", "sm_90", "sm_120"]
    one = read_numba(numba.dispatcher("transpose", launch_bounds=256), numba.signature("transpose"), archs)
    assert len({binary_for(one, arch).profile.code_hash for arch in archs}) == 3
    assert [call["cc"] for call in numba.calls] == [(8, 0), (9, 0), (12, 0)]
    assert linked[0] == ("PTX", "sm_80", "transpose", ["-maxrregcount=32"])
    wanted = {"fastmath": True, "launch_bounds": 256, "device": False, "abi": "numba", "output": "ptx"}
    assert wanted.items() <= numba.calls[0].items()
    of_numba(numba, "axpy")
    assert ("launch_bounds" in numba.calls[-1], linked[-1][-1]) == (False, [])


@pytest.mark.parametrize(("metadata", "told"), [
    ({}, "BLOCK=256, num_warps=2, num_stages=2"),
    ({"maxnreg": 64}, "BLOCK=256, num_warps=2, num_stages=2, maxnreg=64"),
    ({"maxnreg": None, "num_consumer_groups": 0}, "BLOCK=256, num_warps=2, num_stages=2"),
    ({"num_consumer_groups": 2}, "BLOCK=256, num_consumer_groups=2, num_warps=2, num_stages=2"),
])  # fmt: skip
def test_options_of_an_autotuner_are_told_where_they_do_something(metadata: dict[str, Any], told: str) -> None:
    assert read_triton(compiled(NARROW, **metadata), Config(NARROW, **metadata)).config == told


# --- launches --------------------------------------------------------------------------------------


def test_an_array_becomes_numba_s_parameters(numba: NumbaCuda) -> None:
    x, y = device_array(1000), device_array(1000)
    launch = of_numba(numba, "axpy").launch(4, 256, (2.5, x, y))
    assert launch.arguments == (2.5, None, None, 1000, 4, x, 1000, 4, None, None, 1000, 4, y, 1000, 4)
    entries = launch.identity().arguments
    assert entries[:6] == ("float32=2.5", "null", "null", "int64=1000", "int64=4", "float32[1000] align=256")


def test_parameters_of_triton_are_the_function_s_and_null_pointers_behind_them() -> None:
    kernel = of_triton("add-3.6.0")
    own = [("x", "float*", 8), ("y", "float*", 8), ("out", "float*", 8), ("n", "int", 4)]
    hidden = [("scratch memory", "void*", 8)] * 2
    binary = kernel.binary
    assert [(one.name, one.type, one.size) for one in binary.parameters] == own + hidden
    assert (binary.name, binary.arch, binary.toolchain) == ("add", "sm_90", "triton 3.6.0")
    arrays = [device_array(4096, address=0x7F0000000000 + 4096 * number) for number in range(3)]
    kernel.launch(4, (*arrays, 4096, 1024))()
    (grid, block, shared, _), args = kernel.device.log[-1][1:]  # type: ignore[attr-defined]
    assert (grid, block, shared) == ((4, 1, 1), (128, 1, 1), 0)
    assert [int(value) for value in args] == [*(one.data.ptr for one in arrays), 4096, 0, 0]


def test_constants_of_triton_are_given_in_their_places_and_are_no_parameters() -> None:
    kernel = of_triton("scale-3.6.0")
    x, out = device_array(4096, dtype="float16"), device_array(4096, dtype="float16")
    launch = kernel.launch(16, (x, out, 1, 2.5, 4096, 256))
    entries = launch.identity().arguments
    assert [entry.partition("[")[0] for entry in entries[:4]] == ["float16", "float16", "float32=2.5", "int32=4096"]
    assert entries[4:] == ("null",) * (len(entries) - 4)
    assert kernel.launch(16, (x, out, 1, 2.5, 4096)).identity() == launch.identity()  # those at the end may be left out


@pytest.mark.parametrize(("metadata", "configuration"), [
    ({"num_ctas": 2}, ((8, 3, 1), (128, 1, 1), 0, (False, (2, 1, 1), False))),
    ({"num_ctas": 4, "cluster_dims": (2, 2)}, ((8, 6, 1), (128, 1, 1), 0, (False, (2, 2, 1), False))),
    ({"launch_cooperative_grid": True, "launch_pdl": True}, ((4, 3, 1), (128, 1, 1), 0, (True, None, True))),
])  # fmt: skip
def test_attributes_of_triton_s_launch_are_kept(metadata: dict[str, Any], configuration: Any) -> None:
    """A program is a cluster of blocks."""
    kernel = made(TritonKernel, read_triton(compiled("add-3.6.0", **metadata)), OWN_ARCH)
    assert kernel.launch((4, 3), (LINE, LINE, LINE, 4096, 1024)).configuration == configuration


def test_a_tensor_descriptor_is_its_encoding_shape_and_strides() -> None:
    """As Triton's launcher expands it; without a GPU the encoding is empty.  An array stands for the whole of it."""
    kernel = of_triton("double-3.6.0")
    types = [(one.type, one.name, one.size) for one in kernel.binary.parameters[:5]]
    shape = [("int", f"x.shape[{axis}]", 4) for axis in (0, 1)]
    assert types == [("CUtensorMap", "x", 128), *shape, *(("long long", f"x.strides[{axis}]", 8) for axis in (0, 1))]
    x, out = (device_array(256, 128, dtype="float16", address=0x7F0000000000 + 2**20 * place) for place in (0, 1))
    part = SimpleNamespace(base=x, shape=[64, 128], strides=[128, 1], block_shape=[64, 32], padding="nan")
    encoded = []
    kernel.device.tensor_map = lambda *given, nan: encoded.append((*given, nan)) or bytes(128)
    launch = kernel.launch((4, 4), (part, out))
    form = TensorMap(element=6, element_bytes=2, box=(32, 32), swizzle=2)
    assert encoded == [(form, x.data.ptr, (64, 128), [128, 1], True), (form, out.data.ptr, (256, 128), [128, 1], False)]
    whole = ("tensordesc_6_2_32x32[256,128]", "int32=256", "int32=128", "int64=128", "int64=1")
    assert launch.identity().arguments == (
        "tensordesc_6_2_32x32_nan[64,128]", "int32=64", "int32=128", "int64=128", "int64=1", *whole, "null", "null"
    )  # fmt: skip
    assert launch.configuration[:2] == ((8, 4, 1), (128, 1, 1))
    recorded = recorded_arguments(launch.identity().arguments, launch.identity().arguments)
    assert (recorded[0], recorded[5]) == (0, 5), "paired with the launch's own encodings"
    assert PlaceholderDevice().tensor_map(form, None, (64, 128), [128, 1], nan=False) == bytes(128)
    with pytest.raises(LaunchError, match="argument x is of type int: it takes a TensorDescriptor of Triton, or a"):
        kernel.launch((4, 4), (7, out))


def test_arrays_of_cutile_are_address_shape_and_strides_and_constants_are_left_out() -> None:
    x, out = device_array(64, 1000), device_array(64, 1024, address=0x7F0000100000)
    kernel = of_cutile("softmax", {"stride_divisible_by": [8, 1]})
    kernel.launch(64, (x, out, 1024))()
    (grid, block, shared, _), values = kernel.device.log[-1][1:]  # type: ignore[attr-defined]
    assert (grid, block, shared) == ((64, 1, 1), (256, 1, 1), 0)
    assert [int(value) for value in values] == [x.data.ptr, 64, 1000, 1000, 1, out.data.ptr, 64, 1024, 1024, 1]
    assert [value.dtype.name for value in values[1:5]] == ["int32"] * 4
    view = DeviceArray(np.zeros((64, 2048), "float32")[:, :1024])  # with gaps
    known = of_cutile("softmax").launch(64, (view, device_array(64, 1024), 1024)).identity().arguments
    assert known[:5] == ("address align=256", "int32=64", "int32=1024", "int32=2048", "int32=1")


@pytest.mark.parametrize(("name", "args", "words"), [
    ("axpy", (2.5, LINE), r"axpy takes 3 arguments \(a, x, y\), and 2 were given"),
    ("axpy", (2.5, 7, LINE), "axpy takes 15 arguments .* and 9 were given"),
    ("axpy", (2.5, device_array(8, dtype="float64"), LINE), r"argument x is an array of float64, .* declares float\*"),
    ("axpy", (2.5, device_array(8, 8), LINE), "axpy takes 15 arguments .* and 17 were given"),
    ("transpose", (SQUARE, SQUARE, 2**40, 1j, True), "argument n is the number 1099511627776"),
    ("add", (LINE, LINE, LINE, 4096, 512),
     "add: argument BLOCK is 512, but the kernel was compiled for 1024: compile and"),
    ("add", (LINE, LINE, LINE, 4096, LINE), "argument BLOCK is an array, but the kernel was compiled for 1024"),
    ("add", (LINE, LINE, LINE), r"add takes 5 arguments \(x, y, out, n, BLOCK\), and 3 were given"),
    ("add", (LINE, LINE, LINE, 4096, 1024, 4), "takes 5 arguments .* and 6 were given"),
    ("add", LINE, "args takes a tuple"),
    ("softmax", (SQUARE,), r"softmax takes 3 arguments \(1, 2, 3\), and 1 were given"),
    ("softmax", (3, SQUARE, 1024), "softmax takes 10 arguments .* and 6 were given"),
    ("softmax", (LINE, SQUARE, 1024), "softmax takes 10 arguments .* and 8 were given"),
])  # fmt: skip
def test_arguments_not_compiled_for_are_refused(numba: NumbaCuda, name: str, args: Any, words: str) -> None:
    launch = {"add": lambda: of_triton("add-3.6.0").launch(4, args),
              "softmax": lambda: of_cutile("softmax").launch(64, args)}  # fmt: skip
    with pytest.raises(LaunchError, match=words):
        launch.get(name, lambda: of_numba(numba, name).launch(1, 32, args))()


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "why"), [
    ({"device": True}, "it is a device function"),
    ({"debug": True}, "debug=True makes Numba check for exceptions after each launch"),
    ({"link": ["more.cu"]}, "it is linked with files"),
    ({"extensions": [object()]}, "its arguments go through extensions"),
])  # fmt: skip
def test_kernel_that_needs_numba_is_refused(numba: NumbaCuda, options: dict[str, Any], why: str) -> None:
    with pytest.raises(UnsupportedKernel) as caught:
        of_numba(numba, "axpy", **options)
    assert str(caught.value) == f"axpy cannot be launched without Numba: {why}. {UNPAIRED.format('Numba')}"


@pytest.mark.parametrize(("metadata", "declared", "why"), [
    ({"global_scratch_size": 128}, "*fp32", "it needs scratch memory, global_scratch_size=128"),
    ({}, "nvTmaDesc", "its argument y is a descriptor that the test made"),
    ({}, "tensordesc<fp16[64, 64]>", "its argument y is a tensor descriptor that is no tiled one of TMA"),
    ({}, ("*fp32", "i32"), "its argument y is a tuple"),
])  # fmt: skip
def test_kernel_that_needs_triton_is_refused(metadata: dict[str, Any], declared: Any, why: str) -> None:
    one = compiled("add-3.6.0", **metadata)
    one.src.signature["y"] = declared
    with pytest.raises(UnsupportedKernel) as caught:
        read_triton(one)
    assert str(caught.value) == f"add cannot be launched without Triton: {why}. {UNPAIRED.format('Triton')}"


def test_signatures_that_are_no_types_or_too_few_are_refused(numba: NumbaCuda) -> None:
    dispatcher, types = numba.dispatcher("axpy"), numba.signature("axpy")
    for signature, words in (
        ("void(float32)", r"its signature is 'void\(float32\)': .* of Numba's types"),
        (types[:2], r"axpy takes 3 arguments, and its signature is \("),
        ((NumbaType(name="Record(a[type=float32;offset=0])"), *types[1:]), "argument a is .*; arrays and numbers can"),
    ):
        with pytest.raises(UnsupportedKernel, match=words):
            read_numba(dispatcher, signature, ["sm_90"])
    with_return = NumbaType(name="none(...)", args=types)
    assert len(read_numba(dispatcher, with_return, ["sm_90"]).arguments or ()) == 3


def test_code_that_lacks_what_numba_links_is_refused_with_the_remedy(numba: NumbaCuda) -> None:
    ptx = numba.facts["kernels"]["axpy"]["ptx"]
    ptx["sm_90"] = ptx["sm_90"].replace("\tret;", "\tcall.uni sync, ();\n\tret;").replace(
        ".visible .entry", ".extern .func sync ();\n.visible .entry"
    )  # fmt: skip
    with pytest.raises(UnsupportedKernel, match=rf"(?s)nvJitLink cannot link it for sm_90.*sync.*{UNPAIRED[:30]}"):
        of_numba(numba, "axpy")


@pytest.mark.parametrize(("config", "words"), [
    (Config(NARROW, BLOCK=1024),
     "config has BLOCK=1024, but add was compiled with 256: best_config is that of the last call"),
    (Config(NARROW, num_warps=4), "config has num_warps=4, but add was compiled with 2: "),
    (Config(NARROW, maxnreg=64), "config has maxnreg=64, but add was compiled with None: "),
    *(
        (one, r"config is a \w+; it takes kernel\.best_config of an autotuned kernel that")
        for one in ("BLOCK=256", {}, SimpleNamespace(best_config=1), SimpleNamespace(all_kwargs=dict))
    ),
])  # fmt: skip
def test_a_configuration_that_is_not_this_kernel_s_is_refused(config: Any, words: str) -> None:
    with pytest.raises(BadArgument, match=f"^from_triton: {words}"):
        read_triton(compiled(NARROW), config)


# --- captured launches -----------------------------------------------------------------------------

SYMBOL = "kernel_cutlass_add_kernel_tensorptrf32gmemalign16o1_tensorptrf32gmemalign16o1_tensorptrf32gmemalign16o1__0"
CONTENTS = (bytes(range(16)), bytes(16), b"\xff" * 16, b"\x00\x10\x00\x00")
ADDED = CapturedKernel(SYMBOL, Configuration((16, 1, 1), (256, 1, 1)), CONTENTS)
CLUSTERED = CapturedKernel(
    "work", Configuration((8, 2, 1), (64, 1, 2), 4224, LaunchAttributes(True, (2, 1, 1))), (b"12345678",)
)
ON_STREAM = "It may only enqueue this one kernel on gpu.stream, without waiting and without the default stream"
OK = real.CUresult.CUDA_SUCCESS


class CapturingDriver:
    """``cuda.bindings.driver``, whose capture has for nodes what a call appended to ``enqueued``."""

    def __init__(self, enqueued: list[Any], *, by_handle: bool = False) -> None:
        """``by_handle``: a kernel is known by its library's handle alone."""
        kinds = real.CUgraphNodeType
        of_kernel, of_other = kinds.CU_GRAPH_NODE_TYPE_KERNEL, kinds.CU_GRAPH_NODE_TYPE_MEMSET
        self.enqueued, self.said = enqueued, list[str]()
        self._by_handle, self._alive = by_handle, list[Any]()
        vars(self).update({
            "cuStreamBeginCapture": lambda stream, mode: (OK,) * (self.said.append(f"begin {mode.name[23:]}") is None),
            "cuStreamEndCapture": lambda stream: (OK, self.said.append("end") or "graph"),
            "cuGraphDestroy": lambda graph: self.said.append(f"destroy {graph}"),
            "cuGraphGetNodes": lambda graph, count=0: (OK, self.enqueued[:count], len(self.enqueued)),
            "cuGraphNodeGetType": lambda node: (OK, of_kernel if isinstance(node, CapturedKernel) else of_other),
            "cuKernelGetFunction": lambda kernel: (OK, kernel - 1),
            "cuFuncGetName": lambda function: (OK, {5: self.enqueued[0].symbol.encode()}[function]),
        })  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        return getattr(real, name)

    def cuGraphKernelNodeGetParams(self, node: CapturedKernel) -> tuple[Any, ...]:
        buffers = [ctypes.create_string_buffer(content, len(content)) for content in node.parameters]
        addresses = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
        self._alive += [buffers, addresses]
        (x, y, z), (u, v, w) = node.launch.grid, node.launch.block
        found = SimpleNamespace(
            func=0 if self._by_handle else 5, kern=6, gridDimX=x, gridDimY=y, gridDimZ=z, blockDimX=u, blockDimY=v,
            blockDimZ=w, sharedMemBytes=node.launch.dynamic_shared_bytes, kernelParams=ctypes.addressof(addresses),
        )  # fmt: skip
        assert vars(found).keys() <= set(dir(real.CUDA_KERNEL_NODE_PARAMS))
        return OK, found

    def cuFuncGetParamInfo(self, function: int, number: int) -> tuple[Any, ...]:
        contents = self.enqueued[0].parameters
        is_known = number < len(contents)
        return (OK, 0, len(contents[number])) if is_known else (real.CUresult.CUDA_ERROR_INVALID_VALUE, 0, 0)

    def cuGraphKernelNodeGetAttribute(self, node: CapturedKernel, kind: Any) -> tuple[Any, ...]:
        cooperative, (x, y, z) = node.launch.attributes.cooperative, node.launch.attributes.cluster or (0, 0, 0)
        return OK, SimpleNamespace(cooperative=int(cooperative), clusterDim=SimpleNamespace(x=x, y=y, z=z))


@pytest.mark.parametrize("by_handle", [False, True])
@pytest.mark.parametrize("kernel", [CLUSTERED, ADDED])
def test_a_capture_tells_all_of_a_launch_and_leaves_no_graph(kernel: CapturedKernel, by_handle: bool) -> None:
    driver = CapturingDriver([], by_handle=by_handle)
    assert capture_call(driver, 7, lambda: driver.enqueued.append(kernel)) == kernel
    assert driver.said == ["begin RELAXED", "end", "destroy graph"]
    assert [name for name in dir(driver) if name.startswith("cu") and not hasattr(real, name)] == []


def test_a_call_that_fails_ends_the_capture_and_says_what_a_call_may_do() -> None:
    driver = CapturingDriver([])

    def waits() -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.raises(LaunchError, match=rf"cannot be captured: operation not permitted .* capturing\. {ON_STREAM}"):
        capture_call(driver, 7, waits)
    assert driver.said == ["begin RELAXED", "end"]


def of_cute(*enqueued: Any) -> CuteKernel:
    device: Any = PlaceholderDevice()
    device.capture = lambda call: capture_call(CapturingDriver([*enqueued]), 7, call)
    return made(CuteKernel, read_cute(cute_compiled("cute-add-4.8.1-sm_90a")), device=device)  # type: ignore[no-any-return]


def test_the_identity_has_what_was_given_to_the_call_and_no_bytes() -> None:
    identity = of_cute(ADDED).launch(lambda *_: None, (LINE, 4096, 2.5, "fast", object())).identity()
    described = "as called(float32[4096] align=256, 4096, 2.5, 'fast', object)"
    assert identity.arguments == (described, "as called", "as called", "as called")
    assert identity.launch == "grid=(16, 1, 1) block=(256, 1, 1) shared=0"


@pytest.mark.parametrize(("enqueued", "words"), [
    ([], f"the call enqueued 0 kernels, copies and the like on gpu.stream. {ON_STREAM}"),
    ([ADDED, "fill"], "the call enqueued 2 kernels"),
    (["fill"], "the call enqueued 1 kernels, copies"),
    ([ADDED._replace(symbol="other")], f"add_kernel: the call launched other, not the kernel {SYMBOL}"),
    ([ADDED._replace(parameters=CONTENTS[:3])], r"add_kernel takes 4 arguments .*, and 3 were given"),
])  # fmt: skip
def test_a_call_that_is_not_one_launch_of_the_kernel_is_refused(enqueued: list[Any], words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        of_cute(*enqueued).launch(lambda: None)


# --- CuPy ------------------------------------------------------------------------------------------


@pytest.fixture
def cupy_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed CuPy, as far as its folder of headers goes."""
    headers = tmp_path / "_core" / "include"
    (headers / "cupy").mkdir(parents=True)
    installed = ModuleType("handed_samples")
    installed.__file__ = str(tmp_path / "__init__.py")
    monkeypatch.setitem(sys.modules, "handed_samples", installed)
    return headers


def source_of(kernel: Any, name: str | None = None) -> KernelSource:
    source = read_cupy(kernel, name).source
    assert source is not None
    return source


def test_a_raw_kernel_is_compiled_from_its_own_source_and_options() -> None:
    code = read_cupy(raw("scale"))
    source = code.source
    assert source is not None
    assert (source.name, source.options, source.compiler) == ("scale", ("--use_fast_math",), "nvrtc")
    binary = compile_kernel(source, "sm_90")
    assert [parameter.size for parameter in binary.parameters] == [8, 4, 4]
    assert binary.source_hash
    assert not code.cooperative


def test_nvcc_and_cooperative_launches_are_kept() -> None:
    code = read_cupy(raw("scale", backend="nvcc", enable_cooperative_groups=True, options=()))
    assert code.cooperative
    assert code.source is not None
    assert (code.source.compiler, code.source.options) == ("nvcc", ("--std=c++17", "-ftz=true"))


def test_cupy_s_folders_are_searched_as_cupy_does_its_cccl_first(cupy_folder: Path) -> None:
    source = source_of(raw("scale"))
    cccl = [f"-I{cupy_folder / 'cupy/_cccl' / part}" for part in ("cub", "thrust", "libcudacxx")]
    assert list(source.options) == [*cccl, "--use_fast_math", f"-I{cupy_folder}"]


def test_a_template_of_a_module_is_known_by_its_name_expression() -> None:
    source = source_of(module("copies"), "copy<int>")
    assert compile_kernel(source, "sm_90").name == "copy<int>"


def test_a_function_of_a_module_is_known_by_the_name_expression_of_its_symbol() -> None:
    """A RawModule of CuPy 14 gives it the symbol for a name, and the name expressions of the whole module."""
    expressions = ["copy<int>", "copy< float >"]
    code = read_cupy(raw("scale", name="_Z4copyIfEvPT_", name_expressions=expressions))
    assert code.source is not None
    assert (code.name, code.source.expression) == ("copy< float >", "copy< float >")


@pytest.mark.parametrize(("make", "words"), [
    (lambda: read_cupy(raw("scale"), "other"), "a RawKernel has its name; name='other' is for a RawModule"),
    (lambda: read_cupy(raw("scale", name="_Z4copyIfEvPT_", name_expressions=["copy<real>"])),
     "pass the module and the name expression, from_cupy\\(module, 'copy<real>'\\)"),
    (lambda: read_cupy(raw("scale", translate_cucomplex=True)),
     f"CuPy translates its cuComplex.h .*{UNPAIRED.format('CuPy')}"),
    (lambda: read_cupy(module("copies")), "takes a RawModule with the name of a kernel"),
    (lambda: read_cupy(SimpleNamespace()), f"with the name of a kernel, not SimpleNamespace.* {UNPAIRED[:30]}"),
    (lambda: read_cupy(print), "not builtin_function_or_method"),
])  # fmt: skip
def test_what_is_no_kernel_of_cupy_s_is_refused_with_the_remedy(make: Any, words: str) -> None:
    with pytest.raises(UnsupportedKernel, match=words):
        make()
