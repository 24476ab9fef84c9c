"""Texture objects by CuPy's public ``cupy.cuda.texture``."""

from __future__ import annotations

from typing import Any

from pytest_gpuperf.device.interface import TextureHandle
from pytest_gpuperf.device.textures import Sampling

_KINDS = {"i": "Signed", "u": "Unsigned", "f": "Float"}
_FILTERS = {"point": "Point", "linear": "Linear"}
_READS = {"element": "ElementType", "normalized_float": "NormalizedFloat"}


def create_texture(cupy: Any, array: Any, how: Sampling) -> TextureHandle:
    """A texture object; CuPy's holds what it is made of.  A copy is made on the current stream."""
    texture, runtime = cupy.cuda.texture, cupy.cuda.runtime
    array = cupy.asarray(array)  # of PyTorch or another library: the same memory
    modes = [getattr(runtime, f"cudaAddressMode{mode.capitalize()}") for mode in how.address]
    description = texture.TextureDescriptor(
        addressModes=modes, filterMode=getattr(runtime, f"cudaFilterMode{_FILTERS[how.filter]}"),
        readMode=getattr(runtime, f"cudaReadMode{_READS[how.read]}"), normalizedCoords=int(how.normalized),
    )  # fmt: skip
    handle: TextureHandle = texture.TextureObject(_resource(cupy, array, how), description)
    return handle


def _resource(cupy: Any, array: Any, how: Sampling) -> Any:
    texture, runtime = cupy.cuda.texture, cupy.cuda.runtime
    bits = 8 * array.dtype.itemsize
    kind = getattr(runtime, f"cudaChannelFormatKind{_KINDS[array.dtype.kind]}")
    channels = texture.ChannelFormatDescriptor(*(bits if at < how.channels else 0 for at in range(4)), kind)
    width = how.extent[-1]
    if how.layout == "linear":
        return texture.ResourceDescriptor(
            runtime.cudaResourceTypeLinear, arr=array, chDesc=channels, sizeInBytes=array.nbytes
        )
    if how.layout == "pitch2d":
        return texture.ResourceDescriptor(
            runtime.cudaResourceTypePitch2D, arr=array, chDesc=channels, width=width, height=how.extent[0],
            pitchInBytes=width * how.channels * array.dtype.itemsize,
        )  # fmt: skip
    memory = texture.CUDAarray(channels, *reversed(how.extent))
    memory.copy_from(array.reshape(*how.extent[:-1], width * how.channels))
    return texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=memory)
