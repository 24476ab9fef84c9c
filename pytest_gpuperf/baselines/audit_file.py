"""The baseline of ``gpuperf audit``: one compressed file with the figures of every kernel of the files audited.

It is JSON in an XZ container, in one form: equal content is equal bytes.  Like every baseline it may come from anybody.
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping
from pathlib import Path

import msgspec

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.baselines.baseline_errors import BaselineError, quoted
from pytest_gpuperf.baselines.files import read_bounded
from pytest_gpuperf.formatting import UNPRINTABLE
from pytest_gpuperf.model.audited_kernel import Files
from pytest_gpuperf.model.base_record import schema_of

SCHEMA = 1
"""1: figures of ELF sections by file, symbol and architecture."""
MAX_FILE_BYTES = 64 << 20
MAX_JSON_BYTES = 512 << 20
"""Two million kernels have as much."""
_UNPACKING_BYTES = 256 << 20
"""Memory that a file may make its unpacking take."""
_PRESET = 6
_REMEDY = (
    "restore it from version control, or delete it and make it anew: gpuperf audit FILE... --baseline {path} --update"
)


class AuditFileError(BaselineError):
    """The baseline of an audit cannot be read; the message says what to do."""


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    schema: int
    groups: dict[str, Files]


def read(path: Path) -> dict[str, Files] | None:
    """What is on record by project or file; None without a file.  Raises ``BaselineError``."""
    content = read_bounded(path, MAX_FILE_BYTES)
    if content is None:
        return None
    try:
        plain = _unpacked(content)
        schema = schema_of(plain)
        if schema != SCHEMA:
            raise ValueError(f"it has schema {schema}, and this version of the plugin reads {SCHEMA}")
        groups = msgspec.json.decode(plain, type=_Content).groups
        _refuse_unprintable(groups)
    except (ValueError, RecursionError, EOFError, lzma.LZMAError) as problem:  # of msgspec too
        words = quoted(str(problem), 300)
        raise AuditFileError(
            f"{path}: this baseline cannot be read: {words}.\n{_REMEDY.format(path=path)}"
        ) from problem
    return groups


def write(path: Path, groups: Mapping[str, Files]) -> bool:
    """Put ``groups`` on record; False if the file says so already.  Raises ``OSError``."""
    plain = msgspec.json.encode(_Content(SCHEMA, dict(groups)), order="sorted") + b"\n"
    content = lzma.compress(plain, preset=_PRESET)
    if path.exists() and path.read_bytes() == content:
        return False
    write_whole(path, content)
    return True


def _unpacked(content: bytes) -> bytes:
    unpacking = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_UNPACKING_BYTES)
    plain = unpacking.decompress(content, MAX_JSON_BYTES)
    if not unpacking.eof or unpacking.unused_data:
        raise ValueError(f"it is cut short, is not one XZ stream or unpacks to more than {MAX_JSON_BYTES >> 20} MB")
    return plain


def _refuse_unprintable(groups: Mapping[str, Files]) -> None:
    names = (
        name for group, files in groups.items() for name in (group, *files, *(s for one in files.values() for s in one))
    )
    bad = next((name for name in names if UNPRINTABLE.search(name)), None)
    if bad is not None:
        raise ValueError(f"a name has control characters ({bad[:80]!a})")
