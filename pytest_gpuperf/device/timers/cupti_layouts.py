"""Offsets of the fields of CUPTI's records, from the data types that cupti-python exports.

They are those of the structures in ``cupti_activity.h``, which grow from version to version at their end.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

_CODES = {4: "I", 8: "Q"}
"""Format characters of ``struct``, by size in bytes."""


class BuffersUnreadable(Exception):
    """The buffers cannot be read directly here: the library, a function of it or a data type is not found."""


class Layouts(NamedTuple):
    """Readers of the fields that matter, by record."""

    kernel: struct.Struct
    """start, end, correlation id, address of the name"""
    memcpy: struct.Struct
    """start, end, correlation id"""
    memset: struct.Struct
    """start, end, correlation id"""
    tag: struct.Struct
    """external kind, external id, correlation id"""

    @classmethod
    def of(cls, cupti: Any) -> Layouts:
        """From the data types that the binding exports.  Raises ``BuffersUnreadable`` if one is missing or odd."""
        work = ("start", "end", "correlation_id")
        return cls(
            kernel=_reader(cupti, "kernel", (*work, "name")),
            memcpy=_reader(cupti, "memcpy", work),
            memset=_reader(cupti, "memset", work),
            tag=_reader(cupti, "external_correlation", ("external_kind", "external_id", "correlation_id")),
        )


def _reader(cupti: Any, record: str, fields: Sequence[str]) -> struct.Struct:
    """Reads ``fields`` of the newest version of a record that the binding knows."""
    layout = _newest_type(cupti, record)
    template, position = "=", 0
    for field in fields:
        kind, offset = layout.fields.get(field, (None, 0))[:2]
        if kind is None or kind.itemsize not in _CODES or offset < position:
            raise BuffersUnreadable(f"the binding's {record} record has no {field!r} where it should be")
        template += f"{offset - position}x{_CODES[kind.itemsize]}"
        position = offset + kind.itemsize
    return struct.Struct(template)


def _newest_type(cupti: Any, record: str) -> Any:
    """Versions are numbered: ``activity_kernel10_dtype`` is newer than ``activity_kernel9_dtype``."""
    matches = (re.fullmatch(rf"activity_{record}(\d*)_dtype", name) for name in dir(cupti))
    versions = {int(match[1] or 0): match[0] for match in matches if match}
    if not versions:
        raise BuffersUnreadable(f"the binding has no data type for the {record} record")
    return getattr(cupti, versions[max(versions)])
