"""CUPTI's activity records: pieces of GPU work, and the tags of the API calls that launched them.

They are read as they lie in CUPTI's buffers, about a microsecond each: cupti-python 13.0.1 makes an object of every
record, which takes 28 us for a kernel and 3 us for an API call.  So callbacks of our own are registered with the
library that it has loaded.  The offsets of fields come from its data types, the steps from record to record from CUPTI.

The callbacks only lend buffers and take them back, whichever thread calls them.  Calls into the library release the
interpreter lock, for CUPTI may wait meanwhile for a thread that is in a callback.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import re
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SONAMES = ("libcupti.so.13", "libcupti.so.12")
BUFFER_BYTES = 1 << 20
"""CUPTI clears each buffer and asks for more when it is full: small ones are cheap."""

# In cupti_result.h; the last one ends a buffer whose flush was forced, by an incomplete record.
_SUCCESS, _MAX_LIMIT_REACHED, _INVALID_KIND = 0, 12, 21

# CUpti_BuffersCallbackRequestFunc and CUpti_BuffersCallbackCompleteFunc in cupti_activity.h
_SIZE, _ADDRESS = ctypes.c_size_t, ctypes.c_void_p
BufferRequested = ctypes.CFUNCTYPE(None, *map(ctypes.POINTER, (_ADDRESS, _SIZE, _SIZE)))
BufferCompleted = ctypes.CFUNCTYPE(None, _ADDRESS, ctypes.c_uint32, _ADDRESS, _SIZE, _SIZE)


class Activity(NamedTuple):
    """One piece of GPU work as CUPTI recorded it."""

    correlation: int
    """Number of the API call that launched it."""
    start_ns: int
    end_ns: int
    name: str
    launch: tuple[int, ...] = ()
    """``LAUNCH`` of a kernel, where it was asked for."""


LAUNCH = (
    "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "dynamic_shared_memory", "registers_per_thread",
    "static_shared_memory", "cluster_x",
)  # fmt: skip
"""Fields of a kernel's record; a cluster of 0 blocks is none."""


@functools.cache
def records_of(cupti: Any) -> Records:
    """The process's records, as CUPTI has one pair of callbacks.

    Raises what the binding does, ``OSError`` if the library is not loaded, and ``AttributeError`` or ``KeyError`` where
    functions, data types or fields have other names.
    """
    cupti.get_timestamp()  # the binding loads the library with its first call
    return Records(cupti, loaded_library())


def loaded_library() -> Any:
    """The CUPTI that the process has loaded already.  Raises ``OSError`` if there is none."""
    for soname in SONAMES:
        with contextlib.suppress(OSError):
            return ctypes.CDLL(soname, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    raise OSError(f"none of {', '.join(SONAMES)} is loaded")


class Records:
    """The records of a measurement."""

    activities: list[Activity]
    """Read since the start, in no particular order."""
    tags: dict[int, int]
    """Tag of each tagged API call, by its correlation id."""
    with_launches: bool
    """Whether ``Activity.launch`` is read too."""

    def __init__(self, cupti: Any, library: Any) -> None:
        self.activities, self.tags, self.with_launches = [], {}, False
        kinds, work = cupti.ActivityKind, ("correlation_id", "start", "end")
        self._work = (
            (int(kinds.CONCURRENT_KERNEL), "[kernel]", _fields(cupti, "kernel", *work, "name")),
            (int(kinds.MEMCPY), "[memcpy]", _fields(cupti, "memcpy", *work)),
            (int(kinds.MEMSET), "[memset]", _fields(cupti, "memset", *work)),
        )
        self._launch = functools.partial(_fields, cupti, "kernel", *LAUNCH)
        tag = _fields(cupti, "external_correlation", "correlation_id", "external_kind", "external_id")
        self._tag = int(kinds.EXTERNAL_CORRELATION), tag
        self._external = int(cupti.ExternalCorrelationKind.CUSTOM2)
        self._check = cupti.check_status
        self._register = _function(library, "cuptiActivityRegisterCallbacks", BufferRequested, BufferCompleted)
        self._flush_all = _function(library, "cuptiActivityFlushAll", ctypes.c_uint32)
        self._next_record = _function(library, "cuptiActivityGetNextRecord", _ADDRESS, _SIZE, _ADDRESS)
        # Buffers are never freed: CUPTI may hand one that is lent to another user of the process (PyTorch's profiler)
        # that has registered callbacks meanwhile.
        self._malloc = _function(ctypes.CDLL(None), "malloc", _SIZE, answer=_ADDRESS)
        self._own: set[int] = set()
        self._free: deque[int] = deque()
        self._completed: deque[tuple[int, int]] = deque()
        self._callbacks = BufferRequested(self._on_request), BufferCompleted(self._on_completion)
        for callback in self._callbacks:  # CUPTI never forgets them, so they must outlive even the interpreter
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))

    def start(self) -> None:
        """Forget what was read, and take CUPTI's records from now on.  Raises the binding's ``cuptiError``."""
        while self._completed:  # left over from a measurement that failed
            self._take_back(self._completed.popleft()[0])
        self.activities.clear()
        self.tags.clear()
        self._check(self._register(*self._callbacks))  # every time: another user may have taken the callbacks

    def flush(self, forced: int) -> None:
        """Read what CUPTI has, with 1 incomplete buffers too.  Raises the binding's ``cuptiError``."""
        self._check(self._flush_all(forced))
        while self._completed:
            address, valid_bytes = self._completed.popleft()
            try:
                self._read(address, valid_bytes)
            finally:
                self._take_back(address)

    def _on_request(self, buffer: Any, size: Any, most_records: Any) -> None:
        try:
            address = self._free.pop()
        except IndexError:  # asked first, another thread could take the last one in between
            address = self._malloc(BUFFER_BYTES)  # None if there is no memory: CUPTI drops records and counts them
            self._own.add(address)
        buffer[0], size[0], most_records[0] = address, BUFFER_BYTES, 0  # as many as fit

    def _on_completion(self, _context: int, _stream: int, address: int | None, _size: int, valid_bytes: int) -> None:
        if address is not None:
            self._completed.append((address, valid_bytes))

    def _take_back(self, address: int) -> None:
        if address in self._own:  # what another user of CUPTI has lent is left to it
            self._free.append(address)

    def _read(self, address: int, valid_bytes: int) -> None:
        offsets, record = [], ctypes.c_void_p()
        reference, next_record = ctypes.byref(record), self._next_record
        while (status := next_record(address, valid_bytes, reference)) == _SUCCESS:
            offsets.append((record.value or 0) - address)
        if status not in (_MAX_LIMIT_REACHED, _INVALID_KIND):
            self._check(status)
        content, starts = np.frombuffer(ctypes.string_at(address, valid_bytes), np.uint8), np.array(offsets, np.int64)
        (kinds,) = _columns(content, starts, [(np.dtype("i4"), 0)])
        for kind, label, fields in self._work:
            places = starts[np.equal(kinds, kind)]
            calls, begins, ends, *addresses = _columns(content, places, fields)
            names = addresses[0] if addresses else [0] * len(calls)
            # copied: an address surely means the same string within one buffer only
            copies = {one: ctypes.string_at(one).decode(errors="replace") if one else label for one in set(names)}
            of_kernels = self.with_launches and bool(addresses)
            launches = (
                zip(*_columns(content, places, self._launch()), strict=True) if of_kernels else itertools.repeat(())
            )
            self.activities += map(Activity, calls, begins, ends, map(copies.__getitem__, names), launches)
        kind, fields = self._tag
        tagged = zip(*_columns(content, starts[np.equal(kinds, kind)], fields), strict=True)
        self.tags.update((call, tag) for call, external, tag in tagged if external == self._external)


def _fields(cupti: Any, record: str, *names: str) -> list[tuple[Any, int]]:
    """Types and offsets of fields in the newest version of a record: 10 has those of 9, and more behind them."""
    versions = [name for name in dir(cupti) if re.fullmatch(rf"activity_{record}\d*_dtype", name)]
    newest = max(versions, key=lambda name: (len(name), name), default=f"activity_{record}_dtype")
    fields = getattr(cupti, newest).fields
    return [fields[name][:2] for name in names]


def _columns(content: NDArray[np.uint8], starts: NDArray[np.int64], fields: list[tuple[Any, int]]) -> list[list[int]]:
    """The values of each field, in all records that start there."""
    places = [starts[:, None] + np.arange(offset, offset + kind.itemsize) for kind, offset in fields]
    return [content[place].view(kind).ravel().tolist() for place, (kind, _) in zip(places, fields, strict=True)]


def _function(library: Any, name: str, *arguments: Any, answer: Any = ctypes.c_int) -> Any:
    function = getattr(library, name)
    function.argtypes, function.restype = arguments, answer
    return function
