"""What all records have in common."""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of all records: immutable, strict about unknown fields, defaults left out of the JSON."""
