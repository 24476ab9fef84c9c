"""The cubin store: machine code under the name of its own SHA-256, shared by all targets.

A cubin from a pull request is executable code from a stranger: it is handed out only if its content has the hash that
the baseline names.  Whether its architecture fits the GPU is checked by whoever loads it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from pytest_gpuperf.baselines.baseline_errors import (
    CubinError,
    UnreadableBaselineError,
    UnwritableEvidenceError,
    quoted,
)
from pytest_gpuperf.baselines.layout import CUBIN_FOLDER, cubin_path, inside, is_sha256
from pytest_gpuperf.baselines.parsing import read_bounded

MAX_CUBIN_BYTES = 8 * 1024 * 1024
_REMEDY = (
    "Restore it from version control (cubins need '*.cubin binary' in .gitattributes), or record the workload again "
    "with --update-baselines."
)


def read_cubin(root: Path, sha256: str) -> bytes:
    """The verified machine code.  Raises ``CubinError`` if it is missing, altered, too large or unreadable."""
    if not is_sha256(sha256):
        raise CubinError(f"'{quoted(sha256)}' is no SHA-256, so it names no cubin in {root}")
    path = cubin_path(root, sha256)
    try:
        content = read_bounded(path, MAX_CUBIN_BYTES)
    except UnreadableBaselineError as error:
        raise CubinError(f"{path}: the baseline's machine code cannot be used: {error.problem}. {_REMEDY}") from error
    if content is None:
        raise CubinError(f"{path}: the baseline's machine code is missing. {_REMEDY}")
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise CubinError(f"{path}: the content does not match the name (its SHA-256 is {found[:12]}...). {_REMEDY}")
    return content


def placed(root: Path, cubin: bytes) -> tuple[str, Path]:
    """Hash and path of machine code to be stored.  Raises ``UnwritableEvidenceError`` if it could not be read back."""
    if not 0 < len(cubin) <= MAX_CUBIN_BYTES:
        raise UnwritableEvidenceError(
            f"a cubin of {len(cubin)} bytes cannot be stored: the limit is {MAX_CUBIN_BYTES} bytes"
        )
    sha256 = hashlib.sha256(cubin).hexdigest()
    return sha256, cubin_path(root, sha256)


def stored_cubins(root: Path) -> dict[str, Path]:
    """Every file that has a cubin's name, by hash, unverified; sorted."""
    paths = sorted((root / CUBIN_FOLDER).glob("*/*.cubin"))
    return {
        path.stem: inside(root, path) for path in paths if is_sha256(path.stem) and path.parent.name == path.stem[:2]
    }
