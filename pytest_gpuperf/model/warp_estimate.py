"""An estimate of what one warp does, from a walk through the machine code without running it.

``compile.warp_model`` makes it when it is asked for.  No baseline holds one.  It explains, and it outranks single
figures of machine code (``judge.static_weight``); it makes no kernel red by itself.
"""

from __future__ import annotations

import msgspec

from pytest_gpuperf.model.evidence import Record


class Access(Record, frozen=True):
    """Memory instructions of one kind that a warp executes with one pattern of addresses."""

    op: str
    """Class of the instruction: ``global_load``, ``shared_store``, ...; ``atomic_global`` and ``atomic_shared``."""
    bytes: int
    """Per lane."""
    times: float
    """How often a warp executes one."""
    lanes: float = 32
    """Lanes that take part, as far as the code tells."""
    sectors: float | None = None
    """Sectors of 32 bytes that one touches, the warp lying along x; None: data decide, or it is shared memory."""
    wavefronts: float | None = None
    """Wavefronts of one; of an atomic of floats the lanes that want one address, at most, of another one 1.  None: data
    decide, or it is a load or store of global memory."""
    distinct: float = 0
    """Bytes of global memory that a warp touches by these for the first time; 0 if data decide."""
    scratch: float = 0
    """Of ``distinct``, bytes that are stored and then read again, last of all: they wait, and are no result."""


class Site(msgspec.Struct, array_like=True):
    """One instruction; figures are per warp."""

    opcode: tuple[str, ...]
    """With its modifiers, in alphabetical order behind it."""
    klass: str
    """``global_load``, as ``StaticProfile.opcodes`` has them."""
    caller: int | None = None
    """Address of the call of the function that it is in; None in the kernel itself."""
    times: float = 0.0
    """How often it is executed."""
    requests: float = 0.0
    """The same, less the part of the lanes that data send elsewhere."""
    bytes: int = 0
    """Per lane, of a memory access."""
    lanes: float = 0.0
    sectors: float | None = None
    """Of 32 bytes, per request to global memory; None: data decide, or it is none."""
    wavefronts: float | None = None
    """Per request to shared memory, or by an atomic; None: data decide, or it is neither."""
    waits: dict[str, float] = {}
    """Cycles that it waits, by the class of the instruction that it waits for."""
    divisions: float = 0.0
    """Divisions and roots with a slow path that begin here."""
    lost: float = 0.0
    """Of a branch: instructions of its sides, each by the fraction of the warp that waits for its other side."""
    inside: float = 0.0
    """Of a branch: instructions of its sides."""


class WarpEstimate(Record, frozen=True):
    """One warp's way through a kernel whose data and run-time arguments nobody knows.

    Loops whose number of rounds the code does not tell are given one, the same in every kernel; branches that data
    decide are taken both ways, by half of the lanes each if there are two ways.  So figures compare two versions of a
    kernel, and none is a prediction by itself.
    """

    model: int
    """Version of the model that made it; estimates of two versions do not compare."""
    executed: dict[str, float]
    """Instructions by class."""
    cycles: float
    """What a warp takes that has an SM to itself, by the latencies of its instructions."""
    waits: dict[str, float] = msgspec.field(default_factory=dict)
    """Of these, what it waits for results, by the class of the instruction that makes them; ``barrier`` too."""
    lanes: float = 32
    """Mean number of lanes that take part in an instruction."""
    divisions: float = 0
    """Divisions, square roots and remainders whose exact result needs a slow path."""
    accesses: tuple[Access, ...] = ()
    launched: bool = False
    """Sizes and integers are those of a launch, not examples."""
    warps: int = 0
    """Of the whole launch; 0 where none is known."""
    sites: dict[int, Site] = msgspec.field(default_factory=dict)
    """Its instructions by address, for a cause to find the one at fault."""
