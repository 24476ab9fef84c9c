"""NVRTC is kept from handling Ctrl-C itself.

In the first compilation of a process, NVRTC's front end has a handler of its own for SIGINT: the process ends on the
spot with status 4, says nothing and cleans nothing up, or crashes if other threads compile meanwhile.  The handler
that NVRTC gives back afterwards is Python's, but calls that wait then go on waiting in spite of it.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from types import ModuleType

_REFUSED = b"--define-macro=1=1"
"""No name of a macro: the front end sets itself up, and comes to an end after a millisecond or two."""
_ROOM = 1024
"""Bytes, more than a ``struct sigaction`` has on any system."""
_ALONE = threading.Lock()
"""What one thread ignores for a moment, another one must not take for what was there before."""


def leave_interrupts_alone(nvrtc: ModuleType) -> None:
    """Get the first compilation over, with SIGINT ignored: NVRTC then leaves it alone, in all later ones too.

    A SIGINT that comes in that millisecond is lost.  Not by Python's ``signal``, which is for the main thread alone.
    """
    system, before = ctypes.CDLL(None), ctypes.create_string_buffer(_ROOM)
    with _ALONE:
        system.sigaction(signal.SIGINT, None, before)
        try:
            system.signal(signal.SIGINT, ctypes.c_void_p(signal.SIG_IGN))
            _compile_nothing(nvrtc)
        finally:
            system.sigaction(signal.SIGINT, before, None)


def _compile_nothing(nvrtc: ModuleType) -> None:
    status, handle = nvrtc.nvrtcCreateProgram(b"", b"nothing.cu", 0, [], [])
    if status == nvrtc.nvrtcResult.NVRTC_SUCCESS:
        nvrtc.nvrtcCompileProgram(handle, 1, [_REFUSED])
        nvrtc.nvrtcDestroyProgram(handle)
