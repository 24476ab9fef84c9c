"""Texture objects: how an array is sampled, checked on any machine.

The rules are those of the CUDA Runtime API documentation, "Texture Object Management" (``cudaCreateTextureObject``);
the sizes those of the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", the same from 8.0
to 12.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from pytest_gpuperf.config.call_arguments import BadArgument
from pytest_gpuperf.device.descriptors import Descriptor
from pytest_gpuperf.device.interface import TextureHandle
from pytest_gpuperf.device.kernel_arguments import ArrayFacts, array_facts

Layout = Literal["linear", "pitch2d", "array"]
Filter = Literal["point", "linear"]
AddressMode = Literal["wrap", "clamp", "mirror", "border"]
ReadMode = Literal["element", "normalized_float"]

ALIGNMENT, PITCH_ALIGNMENT = 512, 32
"""Bytes: ``textureAlignment`` and ``texturePitchAlignment`` of every GPU so far."""
LARGEST = {
    ("linear", 1): (1 << 28,), ("pitch2d", 2): (65_000, 131_072), ("array", 1): (131_072,),
    ("array", 2): (65_536, 131_072), ("array", 3): (16_384, 16_384, 16_384),
}  # fmt: skip
"""Elements along each axis, the innermost last, by layout and number of axes: there are no others."""
_TYPES = frozenset({"int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "float32"})
_USUAL: dict[int, Layout] = {1: "linear", 2: "pitch2d", 3: "array"}


class Sampling(NamedTuple):
    """How a texture is laid out and read."""

    layout: Layout
    extent: tuple[int, ...]
    """Elements along each axis, the innermost last."""
    channels: int
    filter: Filter
    address: tuple[AddressMode, ...]
    """Outside of the extent, by axis, the innermost first, as CUDA counts x, y and z."""
    read: ReadMode
    normalized: bool
    """Coordinates from 0 to 1."""


class Texture(Descriptor):
    """A texture object over a device array: an argument for a ``cudaTextureObject_t``.  Made by ``gpu.texture``."""

    parameter_bytes = 8
    declared_as = "cudaTextureObject_t"

    def __init__(self, array: Any, sampling: Sampling, create: Callable[[Any, Sampling], TextureHandle]) -> None:
        super().__init__(array)
        self.sampling = sampling
        self._create = create

    @property
    def entry(self) -> str:
        how = self.sampling
        extent = ",".join(map(str, how.extent))
        return (
            f"texture {self.array.dtype}x{how.channels}[{extent}] {how.layout} filter={how.filter} "
            f"address={','.join(how.address)} read={how.read} normalized={how.normalized}"
        )

    def of(self, array: Any) -> Texture:
        return Texture(array, self.sampling, self._create)

    @property
    def follows_array(self) -> bool:
        return self.sampling.layout != "array"

    @cached_property
    def _handle(self) -> TextureHandle:
        return self._create(self.array, self.sampling)

    @cached_property
    def value(self) -> np.generic:
        handle: np.generic = np.uint64(self._handle.ptr)
        return handle


def sampling_of(
    array: Any, *, channels: int, layout: str | None, filter: str, address: str | Sequence[str], read: str,
    normalized: bool,
) -> Sampling:  # fmt: skip
    """The arguments of ``gpu.texture``, checked against each other and the array.  Raises ``BadArgument``."""
    facts = array_facts(array)
    if facts is None:
        raise _refused(f"takes a device array, not {type(array).__name__}")
    if type(channels) is not int or channels not in (1, 2, 4):
        raise _refused(f"channels={channels!r} is none of 1, 2 and 4")
    if not isinstance(normalized, bool):
        raise _refused(f"normalized={normalized!r} takes True or False")
    extent = _extent(facts, channels)
    chosen = _word("layout", _USUAL.get(len(extent)) if layout is None else layout, Layout)
    modes = (address,) * len(extent) if isinstance(address, str) else tuple(address)
    how = Sampling(
        chosen, extent, channels, _word("filter", filter, Filter),
        tuple(_word("address", mode, AddressMode) for mode in modes), _word("read", read, ReadMode), normalized,
    )  # fmt: skip
    _check_type(facts, how)
    _check_extent(how)
    _check_modes(how)
    if how.layout != "array":
        _check_memory(facts, how)
    return how


def _word(name: str, value: Any, kind: Any) -> Any:
    if value not in get_args(kind):
        raise _refused(f"{name}={value!r} is none of {', '.join(get_args(kind))}")
    return value


def _extent(facts: ArrayFacts, channels: int) -> tuple[int, ...]:
    shape = facts.shape if channels == 1 else facts.shape[:-1]
    if channels > 1 and facts.shape[-1:] != (channels,):
        raise _refused(f"channels={channels}: they are the last axis, and the array has the shape {facts.shape}")
    if not 1 <= len(shape) <= 3 or 0 in shape:
        raise _refused(f"an array of shape {facts.shape}: textures have 1 to 3 axes besides channels, and elements")
    if facts.order != "C":
        raise _refused(f"an array of shape {facts.shape} that is not C-contiguous: make a contiguous copy of it")
    return shape


def _check_type(facts: ArrayFacts, how: Sampling) -> None:
    kind = facts.dtype.name
    if kind not in _TYPES:
        raise _refused(f"an array of {kind}: textures are of {', '.join(sorted(_TYPES))}")
    if how.read == "normalized_float" and kind not in ("int8", "uint8", "int16", "uint16"):
        raise _refused(f"read='normalized_float' is for integers of 8 and 16 bits, not for {kind}")
    if how.filter == "linear" and facts.dtype.kind != "f" and how.read != "normalized_float":
        raise _refused(f"filter='linear' of {kind}: only what is read as floating point is filtered")


def _check_extent(how: Sampling) -> None:
    largest = LARGEST.get((how.layout, len(how.extent)))
    if largest is None:
        raise _refused(f"layout={how.layout!r} is not for an array of {len(how.extent)} axes")
    if any(length > most for length, most in zip(how.extent, largest, strict=True)):
        raise _refused(f"{how.extent} elements with layout={how.layout!r}: the most are {largest}")


def _check_modes(how: Sampling) -> None:
    if len(how.address) != len(how.extent):
        raise _refused(f"address={how.address!r}: it takes one mode, or one for each of {len(how.extent)} axes")
    if not how.normalized and {"wrap", "mirror"} & set(how.address):
        raise _refused(f"address={how.address!r}: wrap and mirror are for normalized=True")
    if how.layout == "linear" and (how.filter != "point" or how.normalized or set(how.address) != {"clamp"}):
        raise _refused(
            "linear memory is fetched by its index (tex1Dfetch), without filter, address mode or normalized "
            "coordinates: layout='array' has them, on a copy of the array"
        )


def _check_memory(facts: ArrayFacts, how: Sampling) -> None:
    if facts.address is not None and facts.address % ALIGNMENT:
        raise _refused(f"an array whose address is no multiple of {ALIGNMENT} bytes: texture a whole array, or a copy")
    row = how.extent[-1] * how.channels * facts.dtype.itemsize
    if how.layout == "pitch2d" and row % PITCH_ALIGNMENT:
        per_row = math.lcm(PITCH_ALIGNMENT, how.channels * facts.dtype.itemsize) // how.channels // facts.dtype.itemsize
        raise _refused(
            f"rows of {row} bytes, and layout='pitch2d' takes multiples of {PITCH_ALIGNMENT}: make them multiples of "
            f"{per_row} elements, or take layout='array', on a copy of the array"
        )


def _refused(what: str) -> BadArgument:
    return BadArgument(f"gpu.texture: {what}")
