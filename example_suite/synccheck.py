"""What compute-sanitizer's synccheck says of one launch, in a process of its own.

For kernels that are undefined behaviour: whatever becomes of the process, the tests' own goes on.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from claims import NotLookedAt

LIMIT_S = 60.0
USUAL_FOLDERS = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer")
_LAUNCH = """
import sys, cupy
cupy.cuda.set_allocator(None)
path, symbol, threads, *block = sys.argv[1:]
given, out = cupy.ones(int(threads), "float32"), cupy.zeros(int(threads), "float32")
cupy.RawModule(path=path).get_function(symbol)((1,), tuple(map(int, block)), (given, out))
cupy.cuda.runtime.deviceSynchronize()
"""
"""One block of a kernel that reads one array and writes another, an element per thread."""


def errors(launch: Any, folder: Path) -> int:
    """Errors that it reports of one block of the launch's kernel.  Raises ``NotLookedAt`` where it cannot say."""
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=":".join(USUAL_FOLDERS))
    if tool is None:
        raise NotLookedAt("there is no compute-sanitizer on this machine; it comes with the CUDA toolkit")
    binary, cubin = launch.binary, folder / "kernel.cubin"
    cubin.write_bytes(binary.cubin)
    arguments = [str(cubin), binary.symbol, str(math.prod(launch.block)), *map(str, launch.block)]
    command = [tool, "--tool", "synccheck", sys.executable, "-c", _LAUNCH, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise NotLookedAt(f"compute-sanitizer was not done after {LIMIT_S:g} s") from None
    summary = re.search(r"ERROR SUMMARY: (\d+) error", done.stdout)
    if summary is None:
        raise NotLookedAt(f"compute-sanitizer gave no summary: {(done.stdout + done.stderr)[-500:]}")
    return int(summary[1])
