"""Paths of baselines: targets and test modules to paths that neither collide nor leave the folder, and back."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

from pytest_gpuperf.baselines.baseline_errors import BaselineError, has_unprintable, quoted, unreadable

CUBIN_FOLDER = "cubins"
COMPRESSED = ".cubin.z"
"""By LZMA; named by the hash of the content, since compressors differ."""
RECORDS = ".jsonl"
_ARCH = re.compile(r"sm_[0-9]{2,3}[af]?")
_SLUG = re.compile(r"[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FORBIDDEN = re.compile(r'[<>:"|?*\\]')


def is_arch(target: str) -> bool:
    """True for a static target: ``sm_90``, ``sm_90a``, ``sm_120``."""
    return _ARCH.fullmatch(target) is not None


def is_device(target: str) -> bool:
    """True for a time target: a GPU model's slug such as ``nvidia-h200``."""
    return _SLUG.fullmatch(target) is not None and target != CUBIN_FOLDER and not target.startswith("sm_")


def is_sha256(text: str) -> bool:
    """True for 64 lower-case hexadecimal digits."""
    return _SHA256.fullmatch(text) is not None


def arch_order(arch: str) -> tuple[int, str]:
    """Sorts ``sm_90`` before ``sm_120``."""
    return int("".join(filter(str.isdigit, arch)) or 0), arch


def target_order(target: str) -> tuple[bool, tuple[int, str], str]:
    """Sorts architectures by number before GPU models by name."""
    arch = is_arch(target)
    return not arch, arch_order(target) if arch else (0, ""), target


def record_file(target: str, module: str) -> str:
    """``sm_90`` and ``a/b/test_x.py`` to ``sm_90/a/b/test_x.jsonl``.

    Raises ``BaselineError`` for another target, and for a module that is no plain relative path of a Python file.
    """
    if not is_arch(target) and not is_device(target):
        raise BaselineError(
            f"'{quoted(target)}' is no baseline target: expected an architecture such as sm_90 or a GPU model such as "
            "nvidia-h200"
        )
    parts = module.removesuffix(".py").split("/")
    odd = any(one in ("", ".", "..") or has_unprintable(one) or _FORBIDDEN.search(one) for one in parts)
    if odd or not module.endswith(".py"):
        raise BaselineError(
            f"test module '{quoted(module)}' cannot name a baseline file. Baselines need Python test files below "
            "pytest's root directory, whose names have no control character and none of the characters <>:\"|?*\\. "
            "Start pytest in a folder above them, or name one with --rootdir."
        )
    return f"{target}/{module.removesuffix('.py')}{RECORDS}"


def place_of(path: str) -> tuple[str, str] | None:
    """The target and module of a file, by its path in the folder; None for any other file."""
    target, _, rest = path.partition("/")
    module = rest.removesuffix(RECORDS) + ".py"
    try:
        return (target, module) if record_file(target, module) == path else None
    except BaselineError:
        return None


def cubin_path(root: Path, sha256: str) -> Path:
    """``cubins/3f9a....cubin.z``.  The caller has checked ``is_sha256``."""
    return inside(root, root / CUBIN_FOLDER / f"{sha256}{COMPRESSED}")


def cubin_named(path: PurePath) -> str:
    """The SHA-256 in the name of a file that lies where a cubin of some folder of baselines does; else empty."""
    sha256 = path.name.removesuffix(COMPRESSED)
    return sha256 if path.parent.name == CUBIN_FOLDER and path.name != sha256 and is_sha256(sha256) else ""


def inside(root: Path, path: Path) -> Path:
    """Returns ``path``; raises ``BaselineError`` if links make it point out of ``root``, or in circles."""
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, before Python 3.13
        raise unreadable(path, f"its path cannot be followed ({error})") from error
    if not resolved.is_relative_to(root.resolve()):
        raise BaselineError(
            f"{path} is a link to {quoted(str(resolved), 200)}, outside the baseline folder: remove the link"
        )
    return path
