"""TMA descriptors of tiled tensors: what one describes, checked on any machine.

The rules are those of the CUDA Driver API documentation, "Tensor Map Object Management" (``cuTensorMapEncodeTiled``).
CUDA counts dimensions from the innermost; here they are in the order of the array's shape.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pytest_gpuperf.config.call_arguments import BadArgument
from pytest_gpuperf.device.descriptors import Descriptor
from pytest_gpuperf.device.kernel_arguments import array_facts

TENSOR_MAP_BYTES = 128
DATA_TYPES = {
    "uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5, "float16": 6, "float32": 7, "float64": 8,
    "bfloat16": 9, "float32_ftz": 10, "tfloat32": 11, "tfloat32_ftz": 12,
}  # fmt: skip
"""``CUtensorMapDataType`` by name."""
INTERLEAVES = {"none": 0, "16B": 1, "32B": 2}
SWIZZLES = {
    "none": 0, "32B": 1, "64B": 2, "128B": 3, "128B_atom_32B": 4, "128B_atom_32B_flip_8B": 5, "128B_atom_64B": 6,
}  # fmt: skip
L2_PROMOTIONS = {"none": 0, "64B": 1, "128B": 2, "256B": 3}
OOB_FILLS = {"zeros": 0, "nan": 1}
MOST_AXES, LONGEST_BOX, LARGEST_STEP, LONGEST_AXIS, LARGEST_STRIDE = 5, 256, 8, 1 << 32, 1 << 40
_BYTES = {"uint8": 1, "bfloat16": 2, "float32_ftz": 4, "tfloat32": 4, "tfloat32_ftz": 4}
"""Of data types whose name is no NumPy type's, and of bytes."""
_SAME_BITS = {"int8": "uint8", "bool": "uint8", "int16": "uint16"}
"""Types that are copied as another of their size."""


class Tiling(NamedTuple):
    """A description of tiles of a tensor, apart from its address."""

    data_type: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Bytes, of all axes but the innermost."""
    box: tuple[int, ...]
    steps: tuple[int, ...]
    """From one element that is loaded to the next, by axis."""
    interleave: str
    swizzle: str
    l2_promotion: str
    oob_fill: str


class TensorMap(Descriptor):
    """A TMA descriptor of an array: an argument for a ``CUtensorMap`` by value.  Made by ``gpu.tensor_map``."""

    parameter_bytes = TENSOR_MAP_BYTES
    declared_as = "const __grid_constant__ CUtensorMap"

    def __init__(self, array: Any, tiling: Tiling, encode: Callable[[int, Tiling], bytes]) -> None:
        super().__init__(array)
        self.tiling = tiling
        self._encode = encode

    @property
    def entry(self) -> str:
        how = self.tiling
        text = f"tensor_map {how.data_type}[{_listed(how.shape)}] strides={_listed(how.strides)} box={_listed(how.box)}"
        words = {"interleave": how.interleave, "swizzle": how.swizzle, "l2": how.l2_promotion, "oob": how.oob_fill}
        steps = f" steps={_listed(how.steps)}" if set(how.steps) != {1} else ""
        return f"{text}{steps} {' '.join(f'{name}={value}' for name, value in words.items())}"

    def of(self, array: Any) -> TensorMap:
        return TensorMap(array, self.tiling, self._encode)

    @cached_property
    def value(self) -> np.ndarray[Any, Any]:
        facts = array_facts(self.array)
        content = self._encode(facts.address if facts is not None and facts.address else 0, self.tiling)
        return np.array(np.void(content))


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def tiling_of(
    array: Any, box: Sequence[int], *, dtype: str | None, steps: Sequence[int] | None, interleave: str, swizzle: str,
    l2_promotion: str, oob_fill: str,
) -> Tiling:  # fmt: skip
    """The arguments of ``gpu.tensor_map``, checked against each other and the array.  Raises ``BadArgument``."""
    facts = array_facts(array)
    if facts is None:
        raise _refused(f"takes a device array, not {type(array).__name__}")
    data_type, strides = _data_type(facts.dtype, dtype), _strides(array, facts.shape, facts.dtype.itemsize)
    axes = len(facts.shape)
    tiling = Tiling(
        data_type, facts.shape, strides, _numbers("box", box, axes, LONGEST_BOX),
        _numbers("element_strides", (1,) * axes if steps is None else steps, axes, LARGEST_STEP),
        _word("interleave", interleave, INTERLEAVES), _word("swizzle", swizzle, SWIZZLES),
        _word("l2_promotion", l2_promotion, L2_PROMOTIONS), _word("oob_fill", oob_fill, OOB_FILLS),
    )  # fmt: skip
    _check_tensor(tiling, facts.address)
    _check_box(tiling, facts.dtype.itemsize)
    if tiling.oob_fill == "nan" and "float" not in data_type:
        raise _refused(f"oob_fill='nan' is for floating-point types, not for {data_type}")
    return tiling


def _data_type(given: np.dtype[Any], wanted: str | None) -> str:
    name = _SAME_BITS.get(given.name, given.name) if wanted is None else wanted
    if name not in DATA_TYPES:
        hint = "" if wanted is not None else "; dtype= says what its elements are"
        raise _refused(f"elements of {name}: a tensor map is of {', '.join(DATA_TYPES)}{hint}")
    size = _BYTES[name] if name in _BYTES else np.dtype(name).itemsize
    if size != given.itemsize:
        raise _refused(f"dtype={name!r} has {size} bytes, and the array's {given} has {given.itemsize}")
    return name


def _strides(array: Any, shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Bytes, of all axes but the innermost, whose elements have to follow each other."""
    interface = getattr(array, "__cuda_array_interface__", None)
    strides = array.strides if interface is None else interface.get("strides")
    if strides is None:
        strides = tuple(itemsize * int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape)))
    if shape and shape[-1] > 1 and strides[-1] != itemsize:
        raise _refused("the elements of the last axis do not follow each other: make a contiguous copy of the array")
    return tuple(int(stride) for stride in strides[:-1])


def _numbers(name: str, given: Any, axes: int, most: int) -> tuple[int, ...]:
    try:
        numbers = tuple(operator.index(one) for one in given)
    except TypeError:
        raise _refused(f"{name}={given!r}: it takes a whole number for each axis of the array") from None
    if len(numbers) != axes or not all(1 <= one <= most for one in numbers):
        raise _refused(f"{name}={given!r}: it takes {axes} numbers from 1 to {most}, in the order of the array's shape")
    return numbers


def _word(name: str, value: Any, known: Mapping[str, int]) -> str:
    if not isinstance(value, str) or value not in known:
        raise _refused(f"{name}={value!r} is none of {', '.join(known)}")
    return value


def _check_tensor(how: Tiling, address: int | None) -> None:
    fewest = 1 if how.interleave == "none" else 3
    if not fewest <= len(how.shape) <= MOST_AXES:
        raise _refused(f"{len(how.shape)} axes: with interleave={how.interleave!r} it takes {fewest} to {MOST_AXES}")
    if not all(1 <= length <= LONGEST_AXIS for length in how.shape):
        raise _refused(f"the shape {how.shape}: each axis has 1 to 2^32 elements")
    multiple = 32 if how.interleave == "32B" else 16
    if address is not None and address % multiple:
        raise _refused(f"the array's address is no multiple of {multiple} bytes: describe a whole array, or a copy")
    if any(stride % multiple or not 0 <= stride < LARGEST_STRIDE for stride in how.strides):
        raise _refused(
            f"strides of {_listed(how.strides)} bytes: each is a multiple of {multiple} below 2^40; pad the last axis"
        )


def _check_box(how: Tiling, itemsize: int) -> None:
    inner = how.box[-1] * itemsize
    if how.interleave == "32B" and how.swizzle != "32B":
        raise _refused(f"interleave='32B' takes swizzle='32B', not {how.swizzle!r}")
    if how.interleave != "none":
        return
    if inner % 16:
        raise _refused(f"box={how.box}: its last axis has {inner} bytes, and takes a multiple of 16")
    span = int(how.swizzle.partition("B")[0]) if how.swizzle != "none" else inner
    if inner > span:
        raise _refused(f"box={how.box}: its last axis has {inner} bytes, and swizzle={how.swizzle!r} spans {span}")


def _refused(what: str) -> BadArgument:
    return BadArgument(f"gpu.tensor_map: {what}")
