"""``CuteKernel``: a kernel that the CuTe DSL compiled, launched without it as it launches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_gpuperf.config.call_arguments import BadArgument
from pytest_gpuperf.device.captured_launch import launch_as_called
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.device.launch import Launch, MachineCode, as_tuple

if TYPE_CHECKING:
    from pytest_gpuperf.compile.cute_code import CuteCode


class CuteKernel(MachineCode):
    """A kernel whose grid, block and parameters are formed by a host function of the CuTe DSL."""

    def __init__(self, codes: Mapping[str, CuteCode], *, device: Device, native: str | None) -> None:
        """``codes`` is what ``read_cute`` found."""
        binaries = {arch: code.binary for arch, code in codes.items()}
        super().__init__(binaries, device=device, native=native, ptx=lambda arch: _ptx(codes[arch]))

    def launch(self, call: Callable[..., Any], args: Sequence[Any] = ()) -> Launch:
        """A launch as ``call(*args)`` makes it: ``call`` runs the compiled function on ``gpu.stream``.

        It is called once, here, while the stream is captured: nothing is executed then, and grid, block, shared memory
        and the bytes of all parameters are taken from the graph.  ``args``, arrays above all, are kept alive, and are
        what the identity says of the arguments; other arrays that ``call`` uses are the test's to keep.
        Raises ``LaunchError`` if the call enqueues anything but this kernel, or cannot be captured.
        """
        return launch_as_called(self, call, as_tuple(self.name, args))


def _ptx(code: CuteCode) -> str:
    if not code.ptx:
        raise BadArgument(f"{code.binary.name}: the CuTe DSL did not keep its PTX: --keep-ptx")
    return code.ptx
