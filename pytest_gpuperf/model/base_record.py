"""What all records have in common."""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of all records: immutable, strict about unknown fields, defaults left out of the JSON."""


class _Head(msgspec.Struct):
    schema: int


def schema_of(content: bytes) -> int:
    """The version that a JSON document says it has, read first: one of another version may have other fields.

    Raises ``msgspec.DecodeError`` and ``UnicodeDecodeError``.
    """
    return msgspec.json.decode(content, type=_Head).schema
