"""The C side of a simulated CUPTI: real function pointers, real buffers, records laid out as in the header.

Offsets are those of ``cupti_activity.h`` of CUPTI 13.0, found out with ``offsetof``; cupti-python 13.0.1 exports
data types with the same ones.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np

from pytest_gpuperf.device.timers.cupti_records import BufferCompleted, BufferRequested

SUCCESS, INVALID_PARAMETER, MAX_LIMIT_REACHED, INVALID_KIND = 0, 1, 12, 21


def structure(bytes_: int, **fields: tuple[int, str]) -> np.dtype[Any]:
    offsets, formats = zip(*fields.values(), strict=True)
    return np.dtype({"names": list(fields), "offsets": offsets, "formats": formats, "itemsize": bytes_})


KERNEL = structure(
    216, kind=(0, "i4"), start=(16, "u8"), end=(24, "u8"), device_id=(40, "u4"), correlation_id=(92, "u4"),
    name=(104, "i8"), registers_per_thread=(6, "u2"), grid_x=(52, "i4"), grid_y=(56, "i4"), grid_z=(60, "i4"),
    block_x=(64, "i4"), block_y=(68, "i4"), block_z=(72, "i4"), static_shared_memory=(76, "i4"),
    dynamic_shared_memory=(80, "i4"), cluster_x=(176, "u4"),
)  # fmt: skip
MEMCPY = structure(96, kind=(0, "i4"), start=(16, "u8"), end=(24, "u8"), correlation_id=(44, "u4"))
MEMSET = structure(88, kind=(0, "i4"), start=(16, "u8"), end=(24, "u8"), correlation_id=(44, "u4"))
EXTERNAL_CORRELATION = structure(
    24, kind=(0, "i4"), external_kind=(4, "i4"), external_id=(8, "u8"), correlation_id=(16, "u4")
)
API = structure(40, kind=(0, "i4"), start=(8, "u8"), end=(16, "u8"), correlation_id=(32, "u4"))
MYSTERY = structure(56, kind=(0, "i4"))
"""Of a kind that only the library knows."""

LAYOUTS = {1: MEMCPY, 2: MEMSET, 4: API, 5: API, 10: KERNEL, 39: EXTERNAL_CORRELATION, 77: MYSTERY}


class SimulatedLibrary:
    """What the timer calls of libcupti, each function behind a C function pointer."""

    def __init__(self, binding: Any, records_per_buffer: int = 1000) -> None:
        self.binding = binding
        self.records_per_buffer = records_per_buffer
        self.deaf = False
        """Registers callbacks and never calls them: another copy of the library than the binding's."""
        self.register_status = SUCCESS
        self.flush_status = SUCCESS
        self.walk_status = MAX_LIMIT_REACHED
        self.lent: list[int] = []
        """Addresses in the order in which they were got."""
        self._names: dict[str, Any] = {}
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        prototype = ctypes.CFUNCTYPE
        self.cuptiActivityRegisterCallbacks = prototype(ctypes.c_int, pointer, pointer)(self._register)
        self.cuptiActivityFlushAll = prototype(ctypes.c_int, ctypes.c_uint32)(self._flush)
        self.cuptiActivityGetNextRecord = prototype(ctypes.c_int, pointer, size, pointer)(self._next_record)

    def deliver(self, records: Iterable[Any]) -> None:
        """Write records into buffers and complete them."""
        left = list(records)
        while left:
            part, left = left[: self.records_per_buffer], left[self.records_per_buffer :]
            address = self.request()
            self.lent.append(address or 0)
            self.complete(address, b"".join(map(self.encoded, part)))

    def complete(self, address: int | None, content: bytes) -> None:
        """Complete a buffer that was got before, or that another user of CUPTI has lent."""
        if address is not None:
            ctypes.memmove(address, content, len(content))
        self._completed(None, 0, address, 1 << 20, len(content))

    def request(self) -> int | None:
        """Have a buffer lent."""
        buffer, size, most = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(99)
        self._requested(ctypes.byref(buffer), ctypes.byref(size), ctypes.byref(most))
        assert (size.value, most.value) == (1 << 20, 0)
        return buffer.value

    def encoded(self, record: Any) -> bytes:
        layout = LAYOUTS[record.kind]
        written = np.zeros(1, layout)
        for field in layout.names or ():
            value = getattr(record, field, 0)
            if field == "name":
                value = ctypes.addressof(self._names.setdefault(value, ctypes.create_string_buffer(value.encode())))
            written[field] = value
        return written.tobytes()

    def _register(self, requested: int, completed: int) -> int:
        if self.register_status:
            return self.register_status
        self._requested, self._completed = BufferRequested(requested), BufferCompleted(completed)
        if not self.deaf:
            self.binding.complete = self.deliver
        return SUCCESS

    def _flush(self, forced: int) -> int:
        if not self.deaf:
            self.binding.hand_over(forced)
        return self.flush_status

    def _next_record(self, buffer: int, valid_bytes: int, record: int) -> int:
        current = ctypes.c_void_p.from_address(record)
        after = buffer if current.value is None else current.value + LAYOUTS[_kind_at(current.value)].itemsize
        if after >= buffer + valid_bytes:
            return self.walk_status
        if _kind_at(after) not in LAYOUTS:
            return INVALID_KIND
        current.value = after
        return SUCCESS


def _kind_at(address: int) -> int:
    return ctypes.c_int32.from_address(address).value
