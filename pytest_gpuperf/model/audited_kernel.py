"""What an audit knows of a kernel in a file that is already built: figures of its ELF sections alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

BlockFrom = Literal["required", "bound", "best"]
"""A block's threads are those that the code requires, at most takes, or fills an SM best with."""
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=1 << 16)]
_Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{24}$")]


class AuditedKernel(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One kernel for one architecture."""

    code: _Hash
    """The beginning of the SHA-256 of its bytes (``compile.cubin.code_hash.bytes_hash``)."""
    registers: _Count
    stack_bytes: _Count
    """Per thread, spilled registers and local arrays included."""
    shared_bytes: _Count
    """Static, per block."""
    constant_bytes: _Count
    """In banks of its own, parameters included."""
    barriers: _Count
    code_bytes: _Count
    """Machine code with its padding."""
    block_threads: _Count
    """Of the block that the occupancy is that of; 0 if the architecture's limits are not known."""
    block_from: BlockFrom


Kernels = Mapping[_Text, Mapping[Annotated[str, msgspec.Meta(pattern=r"^sm_[0-9]{2,3}[af]?$")], list[AuditedKernel]]]
"""By symbol and architecture; several files that went into a library may each have brought a kernel of one name."""
Files = Mapping[_Text, Kernels]
"""By name of the library or object, as ``cupy/cuda/cub.so`` in a wheel."""
