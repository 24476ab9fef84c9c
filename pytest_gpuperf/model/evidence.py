"""The base of all records, names of workloads, and evidence from machine code; ``time_record`` has that of time."""

from __future__ import annotations

import hashlib

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of all records: immutable, strict about unknown fields, defaults left out of the JSON."""


class _Head(msgspec.Struct):
    schema: int


def schema_of(content: bytes) -> int:
    """The version that a JSON document says it has, read first: one of another version may have other fields.

    Raises ``msgspec.DecodeError`` and ``UnicodeDecodeError``.
    """
    return msgspec.json.decode(content, type=_Head).schema


class Key(Record, frozen=True, order=True):
    """Names one workload of one test.

    ``module`` is the test file relative to pytest's root, with forward slashes
    (``example_suite/test_transpose.py``); ``test`` is the rest of the node id
    (``TestPadded::test_copy[32]``); ``workload`` is unique within the test.
    """

    module: str
    test: str
    workload: str

    @property
    def node_id(self) -> str:
        return f"{self.module}::{self.test}"

    def __str__(self) -> str:
        return f"{self.node_id} [{self.workload}]"

    def is_of(self, name: str) -> bool:
        """Whether it is ``name``, or that is its folder, file, class, test (with parameters or without) or callable."""
        if name.endswith("]") and str(self).startswith(f"{name[:-1]}: "):
            return True
        rest = self.node_id.removeprefix(name.rstrip("/"))
        return name == str(self) or (rest != self.node_id and (not rest or rest.startswith(("/", "::", "["))))


class Parameter(Record, frozen=True):
    """One kernel parameter as the cubin lays it out."""

    offset: int
    """Bytes from the start of the parameter block."""
    size: int
    """Bytes; a pointer is 8."""
    type: str | None = None
    """C++ type, where mangled name or compiler tell it; of ``extern "C"`` what PTX says (``pointer``); else None."""
    name: str = ""
    """What the source calls it; empty where the compiler does not tell."""


class StaticProfile(Record, frozen=True, kw_only=True):
    """All that the machine code of one kernel on one architecture says about itself.  Exact.

    Figures that are zero for most kernels are left out of the JSON then.
    """

    registers: int
    """32-bit registers per thread."""
    stack_bytes: int = 0
    """Stack frame per thread, bytes; includes spilled registers."""
    spill_store_bytes: int | None = 0
    """Bytes stored per thread by register spills (ptxas); None where machine code alone does not tell."""
    spill_load_bytes: int | None = 0
    """Bytes loaded per thread by register spills (ptxas); None as above."""
    shared_bytes: int = 0
    """Static shared memory per block as declared, bytes (without the 1 KB the driver reserves)."""
    constant_bytes: int
    """Bytes in the kernel's own constant banks and parameters."""
    barriers: int = 0
    """Named barriers used by a block."""
    code_bytes: int
    """Size of the kernel's text section, bytes, with its padding."""
    instructions: int
    """SASS instructions, without the NOP padding at the end."""
    opcodes: dict[str, int]
    """SASS instructions by class (``global_load``, ``fp32``, ``tensor``, ...); zero classes are left out."""
    code_hash: str
    """SHA-256 of everything in the cubin that execution depends on; names and neighbours are not in it."""

    @property
    def spill_bytes(self) -> int | None:
        """Bytes stored and loaded per thread by register spills; None where they are not known."""
        stores, loads = self.spill_store_bytes, self.spill_load_bytes
        return None if stores is None or loads is None else stores + loads


class Occupancy(Record, frozen=True):
    """Theoretical occupancy of one launch on one architecture."""

    blocks_per_sm: int
    warps_per_sm: int
    fraction: float
    """Resident warps over the architecture's maximum, 0 to 1."""
    limiter: str
    """``registers``, ``shared memory``, ``warps`` or ``blocks`` limit it; 0 blocks: what it breaks, or ``clusters``."""


class StaticRecord(Record, frozen=True):
    """Static evidence of one workload for one architecture and toolchain: a leaf of the static baseline."""

    kernel: str
    """The kernel's name as the user gave it (with template arguments)."""
    source_hash: str
    """SHA-256 of source, headers and options: tells a code change from a compiler change."""
    profile: StaticProfile
    block: tuple[int, int, int] | None = None
    """None for a kernel that was compiled but not launched by the test."""
    dynamic_shared_bytes: int = 0
    occupancy: Occupancy | None = None
    grid: tuple[int, int, int] | None = None
    """Of the launch: no evidence of the code, but what an estimate of equal work needs; None where it is not known."""
    symbol: str = ""
    """As the cubin calls the kernel; empty where that is its name."""
    cubin: str = ""
    """SHA-256 of the cubin that it lies in; empty where that was not kept."""
    config: str = ""
    """``KernelBinary.config``."""
    captured: bool = False
    """A callable launched it, so that the workload is called ``CALLABLE: KERNEL``; its absence fails nothing."""


class KernelBinary(Record, frozen=True):
    """One compiled kernel: its cubin and what was read from it.  Made by ``compile``, loaded by ``device``."""

    name: str
    """As the user gave it."""
    symbol: str
    """As the cubin calls it (mangled for C++ kernels)."""
    arch: str
    """``sm_90``"""
    toolchain: str
    """``nvrtc 13.0.88``"""
    source_hash: str
    """Empty for machine code whose source is not at hand."""
    cubin: bytes
    profile: StaticProfile
    parameters: tuple[Parameter, ...]
    max_threads_per_block: int | None = None
    """From ``__launch_bounds__``; None without."""
    required_block: tuple[int, int, int] | None = None
    """The only block that it may be launched with (``__block_size__``, ``.reqntid``); None if any may be."""
    config: str = ""
    """What an autotuner chose to compile: ``BLOCK=1024, num_warps=4, num_stages=3``; empty where none did."""

    @property
    def cubin_hash(self) -> str:
        """SHA-256 of the cubin."""
        return hashlib.sha256(self.cubin).hexdigest()

    def record(
        self, *, block: tuple[int, int, int] | None = None, dynamic_shared_bytes: int = 0,
        occupancy: Occupancy | None = None, grid: tuple[int, int, int] | None = None,
    ) -> StaticRecord:  # fmt: skip
        """The static evidence of this binary under a launch configuration."""
        return StaticRecord(
            kernel=self.name, source_hash=self.source_hash, profile=self.profile, block=block,
            dynamic_shared_bytes=dynamic_shared_bytes, occupancy=occupancy, grid=grid,
            symbol="" if self.symbol == self.name else self.symbol, cubin=self.cubin_hash, config=self.config,
        )  # fmt: skip


def is_below(node_id: str, place: str) -> bool:
    """Whether a test is below a folder, file or class."""
    place = place.removesuffix("/__init__.py")
    return bool(place) and node_id.startswith((f"{place}/", f"{place}::"))


# --- names of toolchains -------------------------------------------------------------------------

UNKNOWN_TOOLCHAIN = "unknown"
"""Of machine code that does not say what made it: CUDA 12 and before leave the assembler out of many cubins."""


def is_known(toolchain: str) -> bool:
    """Whether the name tells one compiler from another: it has a version."""
    return any(character.isdigit() for character in toolchain)
