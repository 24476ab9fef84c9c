"""A driver for Triton without a GPU: it compiles the kernels that a call would launch, lists them, and runs none.

It has what Triton 3.4 to 3.7 ask of a driver.  Kernels that an autotuner chooses are left out: without a GPU nothing
tells which configuration it would take.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

from pytest_gpuperf.model.result import TracedLaunch

MOST_THREADS, MOST_SHARED_BYTES = 1024, 227 << 10


def launches_of(call: Callable[[], Any], arch: str) -> tuple[list[TracedLaunch], Exception | None]:
    """The kernels of Triton, which has been imported, that one call would launch on a GPU of ``arch``.

    The call may end early, by whatever it raises where there is no GPU: what it asked for before counts.  An error of
    Triton itself, such as of a kernel that does not compile, is returned.
    """
    triton: Any = sys.modules["triton"]
    driver = ListingDriver(arch, triton.backends.compiler.GPUTarget)
    problem = None
    with _active(triton.runtime.driver, driver), contextlib.suppress(Exception):
        try:
            call()
        except triton.errors.TritonError as error:
            problem = error
    return [one for one in driver.launches if one.symbol not in driver.tuned], problem


@contextlib.contextmanager
def _active(config: Any, driver: ListingDriver) -> Iterator[None]:
    name = "_active" if "_active" in vars(config) else "active"  # Triton 3.6 makes the real one when asked for it
    before = vars(config)[name]
    setattr(config, name, driver)
    try:
        yield
    finally:
        setattr(config, name, before)


class ListingDriver:
    """Names are Triton's own."""

    tuned: ClassVar[set[str]] = set()
    """Kernels that an autotuner of this process has chosen, and may have kept: by their symbols."""

    def __init__(self, arch: str, target: Any) -> None:
        self.launches: list[TracedLaunch] = []
        self._target = target("cuda", int("".join(filter(str.isdigit, arch))), 32)
        self.utils = SimpleNamespace(load_binary=self._load, get_device_properties=_properties)
        self.launcher_cls = self._launcher

    def get_current_device(self) -> object:
        """Compiled kernels are kept by device, each with its launcher: so this one is a device of its own."""
        return self

    def get_current_stream(self, _device: object) -> int:
        return 0

    def get_current_target(self) -> Any:
        return self._target

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return self._benchmark

    def assemble_tensormap_to_arg(self, _info: object, args: Any) -> Any:
        return args

    def _benchmark(self, call: Callable[[], Any], **_: Any) -> list[float]:
        """All take as long; the kernel of the call is one that is chosen."""
        before = len(self.launches)
        call()
        self.tuned.update(one.symbol for one in self.launches[before:])
        return [1.0, 1.0, 1.0]

    def _load(self, name: str, cubin: bytes, *_: Any) -> tuple[int, tuple[str, bytes], int, int, int]:
        """Module, function, registers, spills and most threads."""
        return 1, (name, cubin), 0, 0, MOST_THREADS

    def _launcher(self, _source: Any, metadata: Any) -> Callable[..., None]:
        def launch(x: int, y: int, z: int, _stream: int, function: tuple[str, bytes], *_: Any) -> None:
            block = metadata.num_warps * metadata.target.warp_size, 1, 1
            clustered, (symbol, cubin) = metadata.num_ctas > 1, function
            self.launches.append(TracedLaunch(symbol, (x, y, z), block, metadata.shared, 0, clustered, cubin))

        return launch


def _properties(_device: object) -> dict[str, int]:
    return {"max_shared_mem": MOST_SHARED_BYTES, "multiprocessor_count": 132, "warpSize": 32}
