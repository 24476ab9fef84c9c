"""The compiler's name and version, in its own words."""

from __future__ import annotations

import functools
import re

from pytest_gpuperf.compile.compile_errors import STATIC_EXTRA, ToolchainMissing
from pytest_gpuperf.compile.nvcc import nvcc
from pytest_gpuperf.compile.nvrtc import NVCC, NVRTC, Program, compile_cubin

_PROBE = 'extern "C" __global__ void probe() {}'
_IN_PTX = re.compile(r"^// Cuda compilation tools, .*\bV(\d+(?:\.\d+)+)", re.M)


def toolchain(compiler: str = NVRTC) -> str:
    """``nvrtc 13.0.88``: the compiler's full version, as it writes it into what it makes; or ``nvcc 13.0.88``.

    NVRTC's is read from compiled PTX, not from an installed package, so it is right for a toolkit's NVRTC too.
    Raises ``ToolchainMissing``.
    """
    return f"nvcc {nvcc().version}" if compiler == NVCC else _nvrtc()


@functools.cache
def _nvrtc() -> str:
    written = _IN_PTX.search(compile_cubin(Program(_PROBE, "probe.cu", "probe.cu", ()), "sm_80").ptx)
    if written is None:  # evidence of an unknown compiler could not be compared
        raise ToolchainMissing(f"NVRTC does not tell its version in what it compiles. Install another: {STATIC_EXTRA}")
    return f"nvrtc {written[1]}"
