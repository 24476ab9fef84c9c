"""The baseline of ``gpuperf audit``: one compressed file with a static record of every kernel of the files audited.

It is JSON in an XZ container, in one form: equal content is equal bytes.  Like every baseline it may come from anybody.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import msgspec

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.baselines.baseline_errors import BaselineError, quoted
from pytest_gpuperf.baselines.records import read_bounded
from pytest_gpuperf.compile.machine_code.audited import AuditedKernel
from pytest_gpuperf.model.evidence import StaticRecord, schema_of

SCHEMA = 1
"""1: static records with file and architecture."""
MAX_FILE_BYTES = 64 << 20
MAX_JSON_BYTES = 512 << 20
"""A million kernels have as much."""
_UNPACKING_BYTES = 256 << 20
"""Memory that a file may make its unpacking take."""
_REMEDY = (
    "restore it from version control, or delete it and make it anew: gpuperf audit FILE... --baseline {path} --update"
)

Builds = dict[str, list[AuditedKernel]]
"""By name of the file that was audited: ``dist/cupy``."""


class AuditFileError(BaselineError):
    """The baseline of an audit cannot be read; the message says what to do."""


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    schema: int
    kernels: list[tuple[str, str, str, StaticRecord]]
    """Each after the name of the file that was audited."""


def read(path: Path) -> Builds | None:
    """What is on record; None without a file.  Raises ``BaselineError``."""
    content = read_bounded(path, MAX_FILE_BYTES)
    if content is None:
        return None
    try:
        plain = _unpacked(content)
        schema = schema_of(plain)
        if schema != SCHEMA:
            raise ValueError(f"it has schema {schema}, and this version of the plugin reads {SCHEMA}")
        found: Builds = {}
        for build, file, arch, record in msgspec.json.decode(plain, type=_Content).kernels:
            found.setdefault(build, []).append(AuditedKernel(file, arch, record))
    except (ValueError, RecursionError, EOFError, lzma.LZMAError) as problem:  # of msgspec too
        words = quoted(str(problem), 300)
        raise AuditFileError(
            f"{path}: this baseline cannot be read: {words}.\n{_REMEDY.format(path=path)}"
        ) from problem
    return found


def write(path: Path, builds: Builds) -> bool:
    """Put ``builds`` on record; False if the file says so already.  Raises ``OSError``."""
    kernels = [(build, *one[:3]) for build, several in builds.items() for one in several]
    kernels.sort(key=lambda one: (*one[:3], one[3].kernel, one[3].profile.code_hash))
    content = lzma.compress(msgspec.json.encode(_Content(SCHEMA, kernels), order="sorted") + b"\n", preset=6)
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
