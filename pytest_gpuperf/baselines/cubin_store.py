"""The cubin store: machine code, compressed, under the name of its own SHA-256, shared by all targets.

A cubin from a pull request is executable code from a stranger: it is handed out only if its content has the hash that
the baseline names.  Whether its architecture fits the GPU is checked by whoever loads it.
"""

from __future__ import annotations

import hashlib
import lzma
from pathlib import Path

from pytest_gpuperf.baselines.baseline_errors import BaselineError, CubinError, quoted
from pytest_gpuperf.baselines.layout import COMPRESSED, CUBIN_FOLDER, cubin_named, cubin_path, is_sha256
from pytest_gpuperf.baselines.records import read_bounded

MAX_CUBIN_BYTES = 3 * 1024 * 1024
"""Eleven times the largest of the example suite."""
_FILTERS = [
    {"id": lzma.FILTER_LZMA1, "preset": 9, "dict_size": MAX_CUBIN_BYTES, "lc": 0, "lp": 2, "pb": 2, "nice_len": 273}
]
"""For words of four bytes."""
_REMEDY = (
    "Restore it from version control (cubins need '*.cubin.z binary' in .gitattributes), or record the workload again "
    "with --update-baselines=all."
)


def read_cubin(root: Path, sha256: str) -> bytes:
    """The verified machine code.  Raises ``CubinError`` if missing or altered, and as ``read_bounded``."""
    if not is_sha256(sha256):
        raise CubinError(f"'{quoted(sha256)}' is no SHA-256, so it names no cubin in {root}")
    path = cubin_path(root, sha256)
    packed = read_bounded(path, MAX_CUBIN_BYTES)
    try:
        content = None if packed is None else _decompressed(packed)
    except (ValueError, EOFError, lzma.LZMAError) as error:
        raise CubinError(f"{path}: the baseline's machine code cannot be read: {error}. {_REMEDY}") from error
    if content is None:
        raise CubinError(f"{path}: the baseline's machine code is missing. {_REMEDY}")
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise CubinError(f"{path}: the content does not match the name (its SHA-256 is {found[:12]}...). {_REMEDY}")
    return content


def _decompressed(packed: bytes) -> bytes:
    """The content of a compressed cubin, unverified.  Raises ``ValueError``, ``EOFError`` and ``LZMAError``."""
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=4 * MAX_CUBIN_BYTES)
    content = unpacker.decompress(packed, MAX_CUBIN_BYTES + 1)
    if len(content) > MAX_CUBIN_BYTES:
        raise ValueError(f"it is larger than {MAX_CUBIN_BYTES // 1024 // 1024} MB")
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("it is cut off, or something follows its end")
    return content


def compressed(cubin: bytes) -> bytes:
    """What lies in the store of a cubin: a quarter less than by zlib.  Raises ``BaselineError`` for its size."""
    if not 0 < len(cubin) <= MAX_CUBIN_BYTES:
        raise BaselineError(f"a cubin of {len(cubin)} bytes cannot be stored: the limit is {MAX_CUBIN_BYTES} bytes")
    return lzma.compress(cubin, lzma.FORMAT_ALONE, filters=_FILTERS)


def stored_cubins(root: Path) -> dict[Path, str]:
    """The hash in the name of every file that has a cubin's name, unverified; sorted by path."""
    paths = sorted((root / CUBIN_FOLDER).glob(f"*{COMPRESSED}"))
    return {path: sha256 for path in paths if (sha256 := cubin_named(path))}
