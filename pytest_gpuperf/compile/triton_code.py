"""Kernels that Triton has compiled: their machine code, their launch, and which arguments are parameters.

Read from a ``triton.compiler.CompiledKernel`` by what it has, as Triton 3.0 to 3.9 make it; Triton is never imported.
Behind the function's own parameters Triton puts a pointer to scratch memory for each ``..._scratch_size`` of its
metadata, null where none is needed.  What only Triton's own launcher can do is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from pytest_gpuperf.compile.compile_errors import UnsupportedTritonKernel
from pytest_gpuperf.compile.machine_code.ready_made import ready_made
from pytest_gpuperf.compile.tuned_configuration import tuned_configuration
from pytest_gpuperf.model.evidence import KernelBinary, Parameter

POINTER_BYTES = 8
CONSTANT = "constexpr"
_C_TYPES = {
    "i1": "bool", "u1": "bool", "i8": "signed char", "u8": "unsigned char", "i16": "short", "u16": "unsigned short",
    "i32": "int", "u32": "unsigned int", "i64": "long long", "u64": "unsigned long long", "fp16": "__half",
    "fp32": "float", "fp64": "double",
}  # fmt: skip
"""Triton's names of types whose values are known to C++; others, such as ``bf16``, go by their size alone."""
_OPTIONS = ("num_warps", "num_ctas", "num_stages", "maxnreg", "enable_fp_fusion")
"""Options that change the machine code of one source."""
_SCRATCH = "_scratch_size"
_REMEDY = "Give gpuperf a function that launches it with Triton; its time is then compared without pairs"


class TritonArgument(NamedTuple):
    """One argument of a Triton function."""

    name: str
    type: str
    """``*fp32``, ``i32``; ``constexpr`` for what was compiled into the machine code and is no parameter."""
    constant: Any = None
    """The value that was compiled in."""

    @property
    def is_constant(self) -> bool:
        return self.type == CONSTANT

    @property
    def c_type(self) -> str:
        """Type as a C++ kernel would declare it."""
        element = self.type.removeprefix("*").removeprefix("k")  # "*kfp32" points to constants
        return _C_TYPES.get(element, element) + ("*" if self.type.startswith("*") else "")


class TritonCode(NamedTuple):
    """All that a launch without Triton needs."""

    cubin: bytes
    symbol: str
    ptx: str
    arguments: tuple[TritonArgument, ...]
    """In the order of the function's own parameters, constants included."""
    scratch_pointers: int
    """Null pointers to be given behind the arguments."""
    threads: int
    """Per block."""
    shared_bytes: int
    """Dynamic shared memory per block."""
    compiler: str
    """``triton 3.6.0``"""
    source: str
    """Changes with the function, what it calls, its constants, types and options."""
    config: str = ""
    """What the autotuner chose, as ``tuned_configuration`` tells it."""


def read_triton(compiled: Any, config: Any = None) -> TritonCode:
    """Read what ``warmup``, ``kernel[grid]`` or ``triton.compile`` returned, and the autotuner's ``best_config``.

    Raises ``UnsupportedTritonKernel``, and ``BadArgument`` for a configuration that is not this kernel's.
    """
    asm, metadata, src = (getattr(compiled, name, None) for name in ("asm", "metadata", "src"))
    if asm is None or metadata is None or src is None or not hasattr(src, "fn"):
        raise UnsupportedTritonKernel(
            f"from_triton takes what Triton has compiled, not {type(compiled).__name__}: "
            "the value of kernel.warmup(...), of kernel[grid](...) or of triton.compile(ASTSource(...))"
        )
    name, backend = metadata.name, metadata.target.backend
    if "cubin" not in asm:
        raise UnsupportedTritonKernel(f"{name}: Triton compiled it for {backend}, and there is no cubin in it")
    arguments = tuple(_arguments(src))
    for obstacle in _obstacles(metadata, arguments):
        raise UnsupportedTritonKernel(f"{name} cannot be launched without Triton: {obstacle}. {_REMEDY}")
    version = getattr(metadata, "triton_version", "")
    return TritonCode(
        cubin=bytes(asm["cubin"]),
        symbol=name,
        ptx=asm.get("ptx", ""),
        arguments=arguments,
        scratch_pointers=len(_scratch(metadata)),
        threads=metadata.num_warps * metadata.target.warp_size,
        shared_bytes=metadata.shared,
        compiler=f"triton {version}".strip(),
        source=f"{src.hash()} {[getattr(metadata, option, None) for option in _OPTIONS]}",
        config=tuned_configuration(name, config, _constants(arguments), metadata),
    )


def triton_binary(code: TritonCode) -> KernelBinary:
    """The machine code with its evidence, and its parameters as Triton's function declares them.

    Raises ``UnsupportedTritonKernel`` where they are not what Triton says, and as ``ready_made``.
    """
    binary = ready_made(code.cubin, code.symbol, place="the cubin of Triton", source=code.source,
                        compiler=code.compiler)  # fmt: skip
    own = [argument for argument in code.arguments if not argument.is_constant]
    scratch = binary.parameters[len(own) :]
    if len(scratch) != code.scratch_pointers or any(parameter.size != POINTER_BYTES for parameter in scratch):
        names = ", ".join(argument.name for argument in own) or "none"
        raise UnsupportedTritonKernel(
            f"{code.symbol}: its machine code takes {len(binary.parameters)} parameters, and Triton tells of "
            f"{len(own)} ({names}) and {code.scratch_pointers} for scratch memory. {_REMEDY}"
        )
    named = (
        msgspec.structs.replace(parameter, type=argument.c_type, name=argument.name)
        for parameter, argument in zip(binary.parameters, own, strict=False)
    )
    hidden = (Parameter(offset=one.offset, size=one.size, type="void*", name="scratch memory") for one in scratch)
    return msgspec.structs.replace(binary, parameters=(*named, *hidden), config=code.config)


def _constants(arguments: tuple[TritonArgument, ...]) -> dict[str, Any]:
    return {argument.name: argument.constant for argument in arguments if argument.is_constant}


def _arguments(src: Any) -> Iterator[TritonArgument]:
    """The function's parameters in their order.

    Constants are keyed by name, by position or by a path of positions, and may lack in the signature.
    """
    for number, name in enumerate(src.fn.arg_names):
        constants = [src.constants[key] for key in (name, number, (number,)) if key in src.constants]
        if constants:
            yield TritonArgument(name, CONSTANT, constants[0])
        else:
            yield TritonArgument(name, src.signature.get(name, CONSTANT))


def _scratch(metadata: Any) -> dict[str, int]:
    """Bytes of each kind of scratch memory that a block needs."""
    return {name: getattr(metadata, name) for name in dir(metadata) if name.endswith(_SCRATCH)}


def _obstacles(metadata: Any, arguments: tuple[TritonArgument, ...]) -> Iterator[str]:
    """Requirements beyond a grid, a block, shared memory and plain arguments."""
    for name, size in _scratch(metadata).items():
        if size > 0:
            yield f"it needs scratch memory, {name}={size}"
    blocks = max(metadata.num_ctas, math.prod(getattr(metadata, "cluster_dims", ())))
    if blocks > 1:
        yield f"it is launched in clusters of {blocks} blocks"
    if getattr(metadata, "launch_cooperative_grid", False):
        yield "its grid is launched cooperatively"
    for argument in arguments:
        if not isinstance(argument.type, str):
            yield f"its argument {argument.name} is a tuple"
        elif argument.type.startswith(("tensordesc", "nvTmaDesc")):
            yield f"its argument {argument.name} is a tensor descriptor, which Triton passes by value"
