"""What ``torch.compile`` makes of a function, kernel by kernel: compiled once more, into a cache of its own.

Public of PyTorch are ``torch.compiler.reset`` and the environment variables that say where its caches lie.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.compile.cubin.occupancy import occupancy
from pytest_gpuperf.compile.cubin.ready_made import ready_made
from pytest_gpuperf.compile.inductor_cache import GeneratedKernel, read_inductor
from pytest_gpuperf.model.evidence import KernelBinary, StaticRecord

_CACHES = {"TORCHINDUCTOR_CACHE_DIR": "", "TRITON_CACHE_DIR": "triton"}
"""Variables that say where, and the folder of each in the temporary one."""


def compiled_by_torch(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[tuple[KernelBinary, StaticRecord]]:
    """The Triton kernels of one call, with their evidence as PyTorch launches them.

    What this process compiled before is compiled anew at its next call: a kernel that is in memory leaves no file.
    Raises ``BadArgument``, ``UnsupportedTritonKernel`` and as ``ready_made``.
    """
    torch = sys.modules.get("torch")
    if torch is None or not callable(function):
        raise BadArgument(
            f"from_torch takes what torch.compile(...) returned, and the arguments to call it with, not "
            f"{type(function).__name__}"
        )
    with tempfile.TemporaryDirectory(prefix="gpuperf-torch-", ignore_cleanup_errors=True) as folder:
        torch.compiler.reset()
        with _caches_in(Path(folder)):
            function(*args, **kwargs)
        return [_with_evidence(kernel) for kernel in read_inductor(Path(folder))]


def _with_evidence(kernel: GeneratedKernel) -> tuple[KernelBinary, StaticRecord]:
    binary = ready_made(kernel.cubin, kernel.name, place=f"the cubin of {kernel.name}", compiler=kernel.compiler)
    binary = msgspec.structs.replace(binary, config=kernel.config)
    fits = occupancy(binary.profile, binary.arch, kernel.threads, kernel.shared_bytes)
    return binary, binary.record(block=(kernel.threads, 1, 1), dynamic_shared_bytes=kernel.shared_bytes, occupancy=fits)


@contextmanager
def _caches_in(folder: Path) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _CACHES}
    os.environ.update({name: str(folder / place) for name, place in _CACHES.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
