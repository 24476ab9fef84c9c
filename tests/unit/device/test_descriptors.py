"""Texture objects and TMA descriptors: what is refused on any machine, the identity, what a device is asked for."""

from __future__ import annotations

import ctypes
import gc
import types
import weakref
from typing import Any

import numpy as np
import pytest
from device_samples import DeviceArray, make_binary

from pytest_gpuperf.config.call_arguments import BadArgument
from pytest_gpuperf.device import tensor_maps
from pytest_gpuperf.device.cupy_textures import create_texture
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.encode_tensor_map import encode_tensor_map
from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.device.kernel_arguments import prepare
from pytest_gpuperf.device.launch import Kernel
from pytest_gpuperf.device.placeholder import PlaceholderDevice
from pytest_gpuperf.device.recorded_arguments import recorded_arguments
from pytest_gpuperf.timing.moving_buffers import MovingBuffers

GPU = Gpu(PlaceholderDevice())


def image(*shape: int, dtype: str = "float32", address: int = 0x7F0000000200) -> DeviceArray:
    return DeviceArray(np.zeros(shape, dtype), address)


def entry(parameter: str | int, value: Any) -> str:
    (argument,) = prepare(make_binary(parameter), (value,), lambda array: True)
    return argument.entry


# --- textures --------------------------------------------------------------------------------------


def test_the_layout_follows_from_the_axes_and_the_identity_has_no_address() -> None:
    line = "texture float32x1[64] linear filter=point address=clamp read=element normalized=False"
    assert entry(8, GPU.texture(image(64))) == line
    assert entry("unsigned long long", GPU.texture(image(64, address=0x7F0000000400))) == line
    plane = GPU.texture(image(16, 64), filter="linear", address=("wrap", "border"), normalized=True)
    assert entry(8, plane) == (
        "texture float32x1[16,64] pitch2d filter=linear address=wrap,border read=element normalized=True"
    )
    assert "x4[16,8] array" in entry(8, GPU.texture(image(16, 8, 4, dtype="uint8"), channels=4, layout="array"))
    assert "[2,3,5] array" in entry(8, GPU.texture(image(2, 3, 5)))


@pytest.mark.parametrize(
    ("shape", "options", "words"),
    [
        ((64,), {"channels": 3}, "channels=3 is none of 1, 2 and 4"),
        ((64, 3), {"channels": 4}, r"they are the last axis, and the array has the shape \(64, 3\)"),
        ((2, 2, 2, 2), {}, "textures have 1 to 3 axes"),
        ((64,), {"layout": "surface"}, "layout='surface' is none of linear, pitch2d, array"),
        ((64,), {"filter": "cubic"}, "filter='cubic' is none of point, linear"),
        ((64,), {"address": "repeat"}, "address='repeat' is none of wrap, clamp, mirror, border"),
        ((64,), {"read": "half"}, "read='half' is none of"),
        ((64,), {"normalized": 1}, "normalized=1 takes True or False"),
        ((64,), {"layout": "pitch2d"}, "layout='pitch2d' is not for an array of 1 axes"),
        ((1, 131_080), {}, r"the most are \(65000, 131072\)"),
        ((16, 64), {"address": ("clamp",)}, "one for each of 2 axes"),
        ((16, 64), {"address": "wrap"}, "wrap and mirror are for normalized=True"),
        ((64,), {"filter": "linear"}, "linear memory is fetched by its index"),
        ((16, 63), {}, r"rows of 252 bytes.*multiples of 8 elements"),
    ],
)  # fmt: skip
def test_a_texture_that_cuda_would_refuse_is_refused_anywhere(
    shape: tuple[int, ...], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadArgument, match=f"^gpu.texture: .*{words}"):
        GPU.texture(image(*shape), **options)


@pytest.mark.parametrize(
    ("array", "options", "words"),
    [
        (3.0, {}, "takes a device array, not float"),
        (np.zeros(64, "float32"), {}, "a NumPy array is in host memory"),
        (image(64, dtype="float64"), {}, "an array of float64: textures are of float16, float32"),
        (image(64, dtype="int32"), {"read": "normalized_float"}, "integers of 8 and 16 bits, not for int32"),
        (image(16, 64, dtype="int32"), {"filter": "linear"}, "only what is read as floating point is filtered"),
        (image(64, address=0x7F0000000210), {}, "no multiple of 512 bytes"),
        (DeviceArray(np.zeros((16, 64), "float32").T), {}, "not C-contiguous"),
    ],
)
def test_an_array_that_cannot_be_a_texture_is_refused(array: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArgument, match=words):
        GPU.texture(array, **options)


@pytest.mark.parametrize("parameter", ["float const*", "float", 4])
def test_a_texture_for_another_parameter_is_refused(parameter: str | int) -> None:
    with pytest.raises(LaunchError, match=r"is a Texture .*: declare the parameter as cudaTextureObject_t"):
        entry(parameter, GPU.texture(image(64)))


class FakeTextures:
    """CuPy with what it was asked for; runtime constants are their names."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        constants = type("Runtime", (), {"__getattr__": lambda _, name: name})()
        made = {name: self._maker(name) for name in ("TextureDescriptor", "ResourceDescriptor", "TextureObject",
                                                     "ChannelFormatDescriptor", "CUDAarray")}  # fmt: skip
        self.cuda = types.SimpleNamespace(runtime=constants, texture=types.SimpleNamespace(**made))

    def asarray(self, array: Any) -> Any:
        return array

    def _maker(self, name: str) -> Any:
        def make(*given: Any, **named: Any) -> Any:
            self.asked.append((name, given, named))
            copied = lambda array: self.asked.append(("copy_from", array.shape, {}))  # noqa: E731
            return types.SimpleNamespace(name=name, ptr=7, copy_from=copied)

        return make

    def of(self, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        ((given, named),) = [(given, named) for asked, given, named in self.asked if asked == name]
        return given, named


def test_cupy_is_asked_for_what_the_texture_describes() -> None:
    array = np.zeros((16, 64), "float32")
    how = GPU.texture(image(16, 64), filter="linear", address=("wrap", "mirror"), normalized=True).sampling
    cupy = FakeTextures()
    assert create_texture(cupy, array, how).ptr == 7
    assert cupy.of("ChannelFormatDescriptor")[0] == (32, 0, 0, 0, "cudaChannelFormatKindFloat")
    (kind,), memory = cupy.of("ResourceDescriptor")
    assert (kind, memory["width"], memory["height"], memory["pitchInBytes"]) == ("cudaResourceTypePitch2D", 64, 16, 256)
    assert memory["arr"] is array
    assert cupy.of("TextureDescriptor")[1] == {
        "addressModes": ["cudaAddressModeWrap", "cudaAddressModeMirror"], "filterMode": "cudaFilterModeLinear",
        "readMode": "cudaReadModeElementType", "normalizedCoords": 1,
    }  # fmt: skip


def test_a_copy_has_the_extent_innermost_first_and_channels_side_by_side() -> None:
    array = np.zeros((3, 16, 8, 4), "uint8")
    cupy = FakeTextures()
    create_texture(cupy, array, GPU.texture(image(3, 16, 8, 4, dtype="uint8"), channels=4).sampling)
    assert cupy.of("CUDAarray")[0][1:] == (8, 16, 3)
    assert cupy.of("ChannelFormatDescriptor")[0] == (8, 8, 8, 8, "cudaChannelFormatKindUnsigned")
    assert cupy.of("copy_from")[0] == (3, 16, 32)
    linear = FakeTextures()
    create_texture(linear, array.reshape(-1), GPU.texture(image(1536, dtype="uint8")).sampling)
    assert linear.of("ResourceDescriptor")[1]["sizeInBytes"] == 1536


# --- tensor maps -----------------------------------------------------------------------------------


def test_a_tensor_map_is_described_in_the_order_of_the_arrays_shape() -> None:
    half = GPU.tensor_map(image(128, 256, dtype="float16"), box=(64, 64), swizzle="128B", l2_promotion="256B")
    text = "tensor_map float16[128,256] strides=512 box=64,64 interleave=none swizzle=128B l2=256B oob=zeros"
    assert entry(128, half) == text
    steps = GPU.tensor_map(image(8, 128, 64), box=(1, 8, 64), element_strides=(1, 2, 1), oob_fill="nan")
    assert entry(128, steps).startswith("tensor_map float32[8,128,64] strides=32768,256 box=1,8,64 steps=1,2,1 ")
    cut = DeviceArray(np.zeros((16, 64), "float32")[:, :32])
    assert "float32[16,32] strides=256" in entry(128, GPU.tensor_map(cut, box=(16, 32)))
    for given, wanted in (("int8", "uint8"), ("int16", "uint16")):
        assert GPU.tensor_map(image(16, 64, dtype=given), box=(16, 16)).tiling.data_type == wanted
    assert GPU.tensor_map(image(16, 64, dtype="uint16"), box=(16, 16), dtype="bfloat16").tiling.data_type == "bfloat16"


@pytest.mark.parametrize(
    ("array", "options", "words"),
    [
        ("x", {}, "takes a device array, not str"),
        (np.zeros((16, 64), "float32"), {}, "a NumPy array is in host memory"),
        (image(16, 64, dtype="complex64"), {}, "elements of complex64"),
        (image(16, 64), {"dtype": "bfloat16"}, "dtype='bfloat16' has 2 bytes, and the array's float32 has 4"),
        (image(16, 64), {"dtype": "half"}, "elements of half: a tensor map is of uint8"),
        (image(16, 64), {"box": (16,)}, r"box=\(16,\): it takes 2 numbers from 1 to 256"),
        (image(16, 64), {"box": (0, 16)}, "2 numbers from 1 to 256"),
        (image(16, 64), {"box": (16, 260)}, "2 numbers from 1 to 256"),
        (image(16, 64), {"box": "ab"}, "a whole number for each axis"),
        (image(16, 64), {"element_strides": (9, 1)}, "2 numbers from 1 to 8"),
        (image(16, 64), {"interleave": "64B"}, "interleave='64B' is none of none, 16B, 32B"),
        (image(16, 64), {"swizzle": 128}, "swizzle=128 is none of none, 32B"),
        (image(16, 64), {"l2_promotion": "512B"}, "l2_promotion='512B' is none of"),
        (image(16, 64), {"oob_fill": "ones"}, "oob_fill='ones' is none of zeros, nan"),
        (image(16, 64, dtype="int32"), {"oob_fill": "nan"}, "for floating-point types, not for int32"),
        (image(2, 2, 2, 2, 2, 64), {"box": (1,) * 5 + (16,)}, "6 axes: with interleave='none' it takes 1 to 5"),
        (image(16, 64), {"interleave": "16B"}, "2 axes: with interleave='16B' it takes 3 to 5"),
        (image(0, 64), {}, "each axis has 1 to 2.32 elements"),
        (image(16, 64, address=0x7F0000000208), {}, "address is no multiple of 16 bytes"),
        (image(2, 16, 64, address=0x7F0000000210), {"box": (1, 4, 8), "interleave": "32B"}, "no multiple of 32 bytes"),
        (image(16, 63), {"box": (16, 16)}, "strides of 252 bytes: each is a multiple of 16"),
        (DeviceArray(np.zeros((16, 128), "float32")[:, ::2]), {}, "do not follow each other"),
        (image(2, 16, 64), {"box": (1, 4, 8), "interleave": "32B"}, "interleave='32B' takes swizzle='32B'"),
        (image(16, 64), {"box": (16, 6)}, "its last axis has 24 bytes, and takes a multiple of 16"),
        (image(16, 64), {"box": (16, 16), "swizzle": "32B"}, "64 bytes, and swizzle='32B' spans 32"),
        (image(16, 64), {"box": (16, 64), "swizzle": "128B_atom_32B"}, "swizzle='128B_atom_32B' spans 128"),
    ],
)  # fmt: skip
def test_a_tensor_map_that_the_driver_would_refuse_is_refused_anywhere(
    array: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadArgument, match=f"^gpu.tensor_map: .*{words}"):
        GPU.tensor_map(array, **{"box": (16, 16), **options})


def test_a_gpu_without_tma_is_told() -> None:
    with pytest.raises(BadArgument, match="has no TMA, which came with compute capability 9"):
        Gpu(PlaceholderDevice("sm_80")).tensor_map(image(16, 64), box=(16, 16))


def test_a_tensor_map_goes_by_value_and_nowhere_else() -> None:
    described = GPU.tensor_map(image(16, 64), box=(16, 16))
    (argument,) = prepare(make_binary(128), (described,), lambda array: True)
    assert (argument.value.dtype, argument.value.shape, argument.value.nbytes) == (np.dtype("V128"), (), 128)
    with pytest.raises(LaunchError, match="declare the parameter as const __grid_constant__ CUtensorMap"):
        entry("float*", described)


def test_names_have_the_numbers_of_cudas_header() -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    enums = {
        "DATA_TYPES": (driver.CUtensorMapDataType, "DATA_TYPE_"),
        "INTERLEAVES": (driver.CUtensorMapInterleave, "INTERLEAVE_"),
        "SWIZZLES": (driver.CUtensorMapSwizzle, "SWIZZLE_"),
        "L2_PROMOTIONS": (driver.CUtensorMapL2promotion, "L2_PROMOTION_L2_"),
    }
    for table, (enum, prefix) in enums.items():
        for name, number in getattr(tensor_maps, table).items():
            wanted = "CU_TENSOR_MAP_L2_PROMOTION_NONE" if (table, name) == ("L2_PROMOTIONS", "none") else ""
            assert getattr(enum, wanted or f"CU_TENSOR_MAP_{prefix}{name.upper()}") == number


class FakeLibrary:
    """A driver that notes what it is asked for, and fills the descriptor with sevens."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.asked: list[Any] = []

    def cuTensorMapEncodeTiled(self, *given: Any) -> int:
        self.asked = [[*one] if isinstance(one, ctypes.Array) else one.value for one in given]
        assert given[0].value % 64 == 0
        ctypes.memset(given[0], 7, 128)
        return self.status


def test_the_driver_is_asked_innermost_first_at_an_aligned_place() -> None:
    how = GPU.tensor_map(image(8, 128, 64), box=(1, 8, 32), element_strides=(1, 2, 1), swizzle="128B",
                         l2_promotion="128B", oob_fill="nan").tiling  # fmt: skip
    library = FakeLibrary()
    assert encode_tensor_map(library, 0x1000, how) == bytes([7]) * 128
    assert library.asked[1:] == [7, 3, 0x1000, [64, 128, 8], [256, 32768], [32, 8, 1], [1, 2, 1], 0, 3, 2, 1]
    line = GPU.tensor_map(image(64), box=(16,)).tiling
    encode_tensor_map(library, 0x1000, line)
    assert library.asked[4:7] == [[64], [0], [16]]


def test_a_driver_that_cannot_or_will_not_is_told() -> None:
    how = GPU.tensor_map(image(16, 64), box=(16, 16)).tiling
    with pytest.raises(LaunchError, match="this driver knows no tensor maps"):
        encode_tensor_map(object(), 0x1000, how)
    with pytest.raises(LaunchError, match=r"the driver refuses .*CUresult 1"):
        encode_tensor_map(FakeLibrary(status=1), 0x1000, how)


# --- launches --------------------------------------------------------------------------------------


def launch_with(*arguments: Any, parameters: tuple[str | int, ...] = ("float*", 8, 128)) -> Any:
    kernel = Kernel({"sm_90": make_binary(*parameters)}, device=PlaceholderDevice(), native=None, ptx=str)
    return kernel.launch(1, 32, arguments)


def test_a_launch_keeps_what_it_was_given_alive() -> None:
    array = image(64)
    launch, alive = launch_with(None, GPU.texture(array), GPU.tensor_map(array, box=(16,))), weakref.ref(array)
    del array
    gc.collect()
    assert alive() is not None
    assert [one.partition(" ")[0] for one in launch.identity().arguments] == ["null", "texture", "tensor_map"]


def test_a_baseline_with_other_parameters_gets_the_descriptors_that_are_described_alike() -> None:
    texture, tensor_map = GPU.texture(image(64)), GPU.tensor_map(image(16, 64), box=(16, 16))
    now = launch_with(image(64), texture, tensor_map)
    array, textured, mapped = now.identity().arguments
    formed = recorded_arguments(make_binary(128, 8, 8), (mapped, textured, array), now)
    assert [one.nbytes for one in formed.values(now)] == [128, 8, 8]
    with pytest.raises(LaunchError, match=r"the record names 1 arrays texture .* this launch has 0"):
        recorded_arguments(make_binary(8), (textured.replace("[64]", "[32]"),), now)


class HostDevice(PlaceholderDevice):
    """Arrays are NumPy's, and a descriptor holds the address."""

    def __init__(self) -> None:
        super().__init__()
        self.arrays: Any = types.SimpleNamespace(empty=lambda shape, dtype="float32": np.empty(shape, dtype))

    def texture(self, array: Any, how: Any) -> Any:
        return types.SimpleNamespace(ptr=array.ctypes.data)

    def tensor_map(self, address: int, how: Any) -> bytes:
        return address.to_bytes(8, "little") * 16


def test_descriptors_move_with_the_buffers_and_a_copy_of_their_own_stays() -> None:
    device = HostDevice()
    gpu = Gpu(device)
    array = np.arange(1024, dtype="float32").reshape(16, 64)
    own = gpu.texture(array, layout="array")
    kernel = Kernel({"sm_90": make_binary("float*", 8, 8)}, device=device, native=None, ptx=str)
    launch = kernel.launch(1, 32, (array, gpu.texture(array), own))
    buffers, remark = MovingBuffers.of(device, launch)
    assert buffers is not None, remark
    moved = buffers.moved(512)
    copy, texture, still = moved.arguments
    assert moved._values[1] == copy.ctypes.data != launch._values[1]
    assert (texture.array.ctypes.data, still) == (copy.ctypes.data, own)
    assert (moved.identity().arguments, copy.tolist()) == (launch.identity().arguments, array.tolist())
