"""Which compiler this is, in its own words."""

from __future__ import annotations

import functools

from pytest_gpuperf.compile.cubin import read_cubin
from pytest_gpuperf.compile.nvrtc import Program, compile_cubin

_PROBE = 'extern "C" __global__ void probe() {}'


@functools.cache
def toolchain() -> str:
    """``nvrtc 13.0.88``: the compiler's full version, as it writes it into what it makes.

    Read from a compiled cubin, not from an installed package, so it is right for a toolkit's NVRTC too.
    Raises ``ToolchainMissing``.
    """
    probe = Program(_PROBE, "probe.cu", "probe.cu", ())
    return f"nvrtc {read_cubin(compile_cubin(probe, 'sm_80').cubin).assembler}"
