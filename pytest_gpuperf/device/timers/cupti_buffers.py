"""CUPTI's activity buffers, read as they lie in memory: about a microsecond per record.

cupti-python turns every record into an array object, API records included, which must be recorded for tags to exist.
So this source registers callbacks of its own with the library that cupti-python has loaded.  The offsets of fields come
from cupti-python's data types, the steps from record to record from CUPTI: a record of an unknown kind is skipped.

The callbacks only lend buffers and take them back, whichever thread calls them; records are read after the
flush.  Calls into the library release the interpreter lock, for CUPTI may wait meanwhile for a thread that
is in a callback.  Where any of this is missing, ``BuffersUnreadable`` says so before anything is traced.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections import deque
from collections.abc import Callable
from typing import Any

from pytest_gpuperf.device.timers.cupti_activities import BUFFER_BYTES, MEMCPY, MEMSET, Activity, RecordKinds
from pytest_gpuperf.device.timers.cupti_layouts import BuffersUnreadable, Layouts

SONAMES = ("libcupti.so.13", "libcupti.so.12")

_SUCCESS = 0
_NO_MORE_RECORDS = 12  # CUPTI_ERROR_MAX_LIMIT_REACHED in cupti_result.h
_INCOMPLETE_RECORD = 21  # CUPTI_ERROR_INVALID_KIND: in a buffer whose flush was forced

# CUpti_BuffersCallbackRequestFunc and CUpti_BuffersCallbackCompleteFunc in cupti_activity.h
_SIZE, _ADDRESS = ctypes.c_size_t, ctypes.c_void_p
BufferRequested = ctypes.CFUNCTYPE(None, *map(ctypes.POINTER, (_ADDRESS, _SIZE, _SIZE)))
BufferCompleted = ctypes.CFUNCTYPE(None, _ADDRESS, ctypes.c_uint32, _ADDRESS, _SIZE, _SIZE)


@functools.cache
def buffered_activities(cupti: Any) -> BufferedActivities:
    """The process's source that reads the buffers of the library behind the binding ``cupti``.

    One per process, as CUPTI has one pair of callbacks.  Raises ``BuffersUnreadable``, and whatever the binding raises
    if it finds no library or driver.
    """
    try:
        cupti.get_timestamp()  # the binding loads the library with its first call
        layouts = Layouts.of(cupti)
        return BufferedActivities(loaded_library(), cupti.check_status, RecordKinds.of(cupti), layouts)
    except AttributeError as error:
        raise BuffersUnreadable(f"this CUPTI or its binding is another: {error}") from error


class BufferedActivities:
    """``ActivitySource`` by callbacks and buffers of our own."""

    def __init__(self, library: Any, check: Callable[[int], None], kinds: RecordKinds, layouts: Layouts) -> None:
        """Works on a loaded libcupti; ``check`` raises the error that belongs to a status."""
        self.activities: list[Activity] = []
        self.tags: dict[int, int] = {}
        self._check = check
        self._kinds = kinds
        self._layouts = layouts
        self._register = _function(library, "cuptiActivityRegisterCallbacks", BufferRequested, BufferCompleted)
        self._flush_all = _function(library, "cuptiActivityFlushAll", ctypes.c_uint32)
        walked = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
        self._next_record = _function(library, "cuptiActivityGetNextRecord", *walked)
        self._pool = BufferPool()
        self._completed: deque[tuple[int, int]] = deque()
        self._callbacks = BufferRequested(self._on_request), BufferCompleted(self._on_completion)
        for callback in self._callbacks:  # CUPTI never forgets them, so they must outlive even the interpreter
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))

    def start(self) -> None:
        """See ``ActivitySource``; registers every time, because another source may have taken the callbacks."""
        while self._completed:  # left over from a measurement that failed
            self._pool.take_back(self._completed.popleft()[0])
        self.activities.clear()
        self.tags.clear()
        self._check(self._register(*self._callbacks))

    def flush(self, forced: int) -> None:
        """See ``ActivitySource``; also raises ``cuptiError`` if a buffer cannot be walked to its end."""
        self._check(self._flush_all(forced))
        while self._completed:
            address, valid_bytes = self._completed.popleft()
            try:
                self._read(address, valid_bytes)
            finally:
                self._pool.take_back(address)

    def _on_request(self, buffer: Any, size: Any, most_records: Any) -> None:
        buffer[0] = self._pool.lend()
        size[0] = BUFFER_BYTES
        most_records[0] = 0  # as many as fit

    def _on_completion(self, _context: int, _stream: int, address: int | None, _size: int, valid_bytes: int) -> None:
        if address is not None:
            self._completed.append((address, valid_bytes))

    def _read(self, address: int, valid_bytes: int) -> None:
        kinds, layouts = self._kinds, self._layouts
        read_kernel, read_tag = layouts.kernel.unpack_from, layouts.tag.unpack_from
        unnamed = {kinds.memcpy: (layouts.memcpy, MEMCPY), kinds.memset: (layouts.memset, MEMSET)}
        content = ctypes.string_at(address, valid_bytes)
        kind_at = memoryview(content).cast("i")
        names = _Names()
        for offset in self._offsets(address, valid_bytes):
            kind = kind_at[offset >> 2]
            if kind == kinds.tag:
                external, tag, correlation = read_tag(content, offset)
                if external == kinds.external:
                    self.tags[correlation] = tag
            elif kind == kinds.kernel:
                start, end, correlation, name = read_kernel(content, offset)
                self.activities.append(Activity(correlation, start, end, names[name]))
            elif kind in unnamed:
                layout, label = unnamed[kind]
                start, end, correlation = layout.unpack_from(content, offset)
                self.activities.append(Activity(correlation, start, end, label))

    def _offsets(self, address: int, valid_bytes: int) -> list[int]:
        """Offset of each record."""
        offsets = []
        record = ctypes.c_void_p()
        reference, next_record = ctypes.byref(record), self._next_record
        while (status := next_record(address, valid_bytes, reference)) == _SUCCESS:
            offsets.append((record.value or 0) - address)
        if status not in (_NO_MORE_RECORDS, _INCOMPLETE_RECORD):
            self._check(status)
        return offsets


class BufferPool:
    """Buffers for CUPTI, reused once they are back.

    From ``malloc`` and never freed, because CUPTI may hand one that is lent to another user of the process
    (cupti-python, PyTorch's profiler) that has registered callbacks meanwhile.
    """

    def __init__(self) -> None:
        self._allocate = _function(ctypes.CDLL(None), "malloc", ctypes.c_size_t, answer=ctypes.c_void_p)
        self._own: set[int] = set()
        self._free: deque[int] = deque()

    def lend(self) -> int | None:
        """Address of ``BUFFER_BYTES``; None if there is no memory, upon which CUPTI drops records and counts them."""
        try:
            return self._free.pop()
        except IndexError:  # asked first, another thread could take the last one in between
            address: int | None = self._allocate(BUFFER_BYTES)
            if address is not None:
                self._own.add(address)
            return address

    def take_back(self, address: int) -> None:
        """Keeps a buffer for the next request; one that another user of CUPTI has lent is left to it."""
        if address in self._own:
            self._free.append(address)


class _Names(dict[int, str]):
    """Copies of C strings by address, for as long as an address surely means the same string: one buffer."""

    def __missing__(self, address: int) -> str:
        name = ctypes.string_at(address).decode(errors="replace") if address else "[kernel]"
        self[address] = name
        return name


def loaded_library() -> Any:
    """The CUPTI that the process has loaded already.  Raises ``BuffersUnreadable`` if there is none."""
    for soname in SONAMES:
        try:
            return ctypes.CDLL(soname, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        except OSError:
            continue
    raise BuffersUnreadable(f"none of {', '.join(SONAMES)} is loaded")


def _function(library: Any, name: str, *arguments: Any, answer: Any = ctypes.c_int) -> Any:
    function = getattr(library, name)
    function.argtypes = arguments
    function.restype = answer
    return function
