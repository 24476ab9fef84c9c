"""Kernels that Triton has compiled: their machine code, their launch, and what its autotuner chose.

Read from a ``triton.compiler.CompiledKernel`` and a ``triton.Config`` by what they have, as Triton 3.0 to 3.9 make
them.  Behind the function's own parameters Triton puts a pointer to scratch memory for each ``..._scratch_size`` of its
metadata, null where none is needed.  What only Triton's own launcher can do is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.compile.adapters.handed import OWN_ARCH, FunctionArgument, Handed, TensorMap, source_of, unsupported
from pytest_gpuperf.compile.compile_errors import UnsupportedKernel

_C_TYPES = {
    "i1": "bool", "u1": "bool", "i8": "signed char", "u8": "unsigned char", "i16": "short", "u16": "unsigned short",
    "i32": "int", "u32": "unsigned int", "i64": "long long", "u64": "unsigned long long", "fp16": "__half",
    "fp32": "float", "fp64": "double",
}  # fmt: skip
"""Triton's names of types whose values are known to C++; others, such as ``bf16``, go by their size alone."""
_ELEMENTS = {8: 10, 9: 8, 10: 9}
"""``CUtensorMapDataType`` (CUDA Driver API) of what PTX has in another place: f32.ftz, f64 and bf16 of
``tensormap.replace`` (PTX ISA)."""
CHOICES = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Options of every ``triton.Config``, in the order in which they stand behind the kernel's own constants."""


def read_triton(compiled: Any, config: Any = None) -> Handed:
    """What ``warmup``, ``kernel[grid]`` or ``triton.compile`` returned, with the autotuner's ``best_config``.

    Raises ``UnsupportedKernel``, and ``BadArgument`` for a configuration that is not this kernel's.
    """
    asm, metadata, src = (getattr(compiled, name, None) for name in ("asm", "metadata", "src"))
    if asm is None or metadata is None or src is None or not hasattr(src, "fn"):
        raise UnsupportedKernel(
            f"from_triton takes a kernel that Triton compiled, not {type(compiled).__name__}: "
            "the value of kernel.warmup(...), of kernel[grid](...) or of triton.compile(ASTSource(...))"
        )
    name, backend = metadata.name, metadata.target.backend
    if "cubin" not in asm:
        raise UnsupportedKernel(f"{name}: Triton compiled it for {backend}, and there is no cubin in it")
    constants = _constants(src)
    types = {
        one: "constexpr" if one in constants else src.signature.get(one, "constexpr") for one in src.fn.arg_names
    }  # constants may lack in the signature
    maps = getattr(metadata, "tensordesc_meta", None) or ()
    for feature in _unsupported_features(metadata, types, maps):
        raise unsupported(f"{name} cannot be launched without Triton: {feature}", "Triton")
    cluster = (*getattr(metadata, "cluster_dims", ()), 1, 1, 1)[:3]  # until Triton 3.5
    return Handed(
        {OWN_ARCH: [bytes(asm["cubin"])]}, name, f"{name}, compiled by Triton",
        arguments=tuple(_arguments(types, constants, maps)),
        scratch_pointers=len(_scratch(metadata)), threads=metadata.num_warps * metadata.target.warp_size,
        shared_bytes=metadata.shared, cluster=cluster if math.prod(cluster) > 1 else (metadata.num_ctas, 1, 1),
        cooperative=getattr(metadata, "launch_cooperative_grid", False), pdl=getattr(metadata, "launch_pdl", False),
        compiler=f"triton {getattr(metadata, 'triton_version', '')}".strip(),
        config=_configuration(name, config, constants, metadata),
        source=f"{source_of(src.fn)} {types} {constants} {src.attrs} "
        f"{[getattr(metadata, option, None) for option in (*CHOICES, 'enable_fp_fusion')]}",
    )  # fmt: skip


def _constants(src: Any) -> dict[str, Any]:
    """Values that were compiled in, by name: they are keyed by name, by position or by a path of positions."""
    return {
        name: src.constants[key]
        for number, name in enumerate(src.fn.arg_names)
        for key in (name, number, (number,))
        if key in src.constants
    }


def _arguments(
    types: Mapping[str, str], constants: Mapping[str, Any], maps: Sequence[Mapping[str, Any]]
) -> Iterator[FunctionArgument]:
    """``maps`` are how tensor descriptors are encoded, in their order."""
    encoded = iter(maps)
    for name, declared in types.items():
        if declared == "constexpr":
            yield FunctionArgument(name, constant=(constants.get(name),))
        elif declared.startswith("tensordesc"):
            yield _descriptor(name, next(encoded))
        else:
            element = declared.removeprefix("*").removeprefix("k")  # "*kfp32" points to constants
            c_type = _C_TYPES.get(element, element) + ("*" if declared.startswith("*") else "")
            yield FunctionArgument(name, ((c_type, name),))


def _descriptor(name: str, encoded: Mapping[str, Any]) -> FunctionArgument:
    box, element = tuple(encoded["block_size"]), encoded["elem_type"]
    parts = [("int", f"{name}.shape[{axis}]") for axis in range(len(box))]
    parts += [("long long", f"{name}.strides[{axis}]") for axis in range(len(box))]
    swizzle, spread = encoded["swizzle"], encoded["fp4_padded"]
    form = TensorMap(_ELEMENTS.get(element, element), encoded["elem_size"], box, swizzle, spread)
    return FunctionArgument(name, (("CUtensorMap", name), *parts), tensor_map=form)


def _scratch(metadata: Any) -> dict[str, int]:
    """Bytes of each kind of scratch memory that a block needs."""
    return {name: getattr(metadata, name) for name in dir(metadata) if name.endswith("_scratch_size")}


def _unsupported_features(metadata: Any, types: Mapping[str, Any], maps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Requirements that only Triton's own launcher meets."""
    for name, size in _scratch(metadata).items():
        if size > 0:
            yield f"it needs scratch memory, {name}={size}"
    for name, declared in types.items():
        if not isinstance(declared, str):
            yield f"its argument {name} is a tuple"
        elif declared.startswith("nvTmaDesc"):
            yield f"its argument {name} is a descriptor that the test made"
        elif declared.startswith("tensordesc") and (not maps or any(one.get("is_im2col") for one in maps)):
            yield f"its argument {name} is a tensor descriptor that is no tiled one of TMA"


def _configuration(kernel: str, config: Any, constants: Mapping[str, Any], metadata: Any) -> str:
    """``BLOCK=1024, num_warps=4, num_stages=3``; empty if ``config`` is None.

    Raises ``BadArgument`` for what is no configuration, or not that of the kernel with these constants and options.
    """
    if config is None:
        return ""
    settings = config.all_kwargs() if callable(getattr(config, "all_kwargs", None)) else config
    if not isinstance(settings, Mapping) or not settings:
        raise BadArgument(
            f"from_triton: config is a {type(config).__name__}; it takes kernel.best_config of an autotuned kernel "
            'that was called, or a dict such as {"BLOCK": 1024, "num_warps": 4}'
        )
    chosen = {str(name): value for name, value in settings.items() if value is not None}
    for name, value in chosen.items():
        compiled = constants[name] if name in constants else getattr(metadata, name, None)
        # Triton adds the warps of a specialised kernel's partitions to those that were asked for
        if not (compiled >= value if name == "num_warps" else compiled == value):
            raise BadArgument(
                f"from_triton: config has {name}={value!r}, but {kernel} was compiled with {compiled!r}: best_config "
                "is that of the last call, so read it right after the call that compiled this kernel"
            )
    return configuration_text(chosen)


def configuration_text(chosen: Mapping[str, Any]) -> str:
    """What was ``chosen``: constants by name, then options.  What does nothing is left out: not every Triton has it."""
    names = [*sorted(chosen.keys() - set(CHOICES)), *(name for name in CHOICES if name in chosen)]
    settings = (name for name in names if chosen[name] and (name, chosen[name]) != ("num_ctas", 1))
    return ", ".join(f"{name}={chosen[name]}" for name in settings)
