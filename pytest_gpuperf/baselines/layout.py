"""Paths of baselines: targets and test modules to paths that neither collide nor escape the folder, and back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pytest_gpuperf.baselines.baseline_errors import UnreadableBaselineError, UnsafePathError, has_unprintable, quoted

CUBIN_FOLDER = "cubins"
COMPRESSED = ".cubin.z"
"""By LZMA; named by the hash of what it holds, since compressors differ."""
_ARCH = re.compile(r"sm_[0-9]{2,3}[af]?")
_SLUG = re.compile(r"[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FORBIDDEN = re.compile(r'[<>:"|?*\\]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


def is_arch(target: str) -> bool:
    """True for a static target: ``sm_90``, ``sm_90a``, ``sm_120``."""
    return _ARCH.fullmatch(target) is not None


def is_device(target: str) -> bool:
    """True for a time target: a GPU model's slug such as ``nvidia-h200``."""
    if target == CUBIN_FOLDER or target.startswith("sm_") or _RESERVED.fullmatch(target):
        return False
    return _SLUG.fullmatch(target) is not None


def is_sha256(text: str) -> bool:
    """True for 64 lower-case hexadecimal digits."""
    return _SHA256.fullmatch(text) is not None


def arch_order(arch: str) -> tuple[int, str]:
    """Sorts ``sm_90`` before ``sm_120``."""
    return int("".join(filter(str.isdigit, arch)) or 0), arch


def module_file(module: str) -> PurePosixPath:
    """``a/b/test_x.py`` to ``a/b/test_x.json``.  Raises ``UnsafePathError`` for anything but a plain relative path."""
    if not module:  # what pytest calls a file outside of its root
        raise UnsafePathError(
            "test module '' cannot name a baseline file: it lies outside of pytest's root directory. Start pytest in a "
            "folder above it, or name one with --rootdir."
        )
    parts = module.split("/")
    if not module.endswith(".py") or parts[-1] == ".py":
        raise UnsafePathError(f"test module '{quoted(module)}': baselines belong to Python test files (.py)")
    for part in parts:
        problem = _part_problem(part)
        if problem:
            raise UnsafePathError(
                f"test module '{quoted(module)}' cannot name a baseline file: {problem}. "
                "Baselines need test files below pytest's root directory (--rootdir) with portable names."
            )
    return PurePosixPath(module[: -len(".py")] + ".json")


def _part_problem(part: str) -> str:
    if part in ("", ".", ".."):
        return "it is absolute, or has an empty, '.' or '..' part"
    if has_unprintable(part) or _FORBIDDEN.search(part):
        return 'it has a control character or one of <>:"|?*\\'
    if _RESERVED.fullmatch(part) or part[-1] in ". ":
        return f"'{quoted(part)}' is reserved on Windows"
    return ""


def module_of(relative: PurePosixPath) -> str:
    """The inverse of ``module_file``."""
    return str(relative.with_suffix(".py"))


def evidence_path(root: Path, target: str, module: str) -> Path:
    """The file of one target and module.  Raises ``UnsafePathError`` for a bad target, module or link."""
    if not is_arch(target) and not is_device(target):
        raise UnsafePathError(
            f"'{quoted(target)}' is no baseline target: expected an architecture such as sm_90 or a GPU model such as "
            "nvidia-h200"
        )
    return inside(root, root / target / module_file(module))


def cubin_path(root: Path, sha256: str) -> Path:
    """``cubins/3f/3f9a....cubin.z``.  The caller has checked ``is_sha256``."""
    return inside(root, root / CUBIN_FOLDER / sha256[:2] / f"{sha256}{COMPRESSED}")


def cubin_named(path: PurePosixPath) -> str:
    """The SHA-256 in the name of a file that lies where a cubin of some folder of baselines does; else empty."""
    sha256 = path.name.removesuffix(COMPRESSED)
    if sha256 == path.name or path.parts[-3:-1] != (CUBIN_FOLDER, sha256[:2]):
        return ""
    return sha256 if is_sha256(sha256) else ""


def inside(root: Path, path: Path) -> Path:
    """Returns ``path``; raises ``UnsafePathError`` if symbolic links make it point out of ``root``, or root is one."""
    refuse_linked(root)
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, before Python 3.13
        raise UnreadableBaselineError(path, f"its path cannot be followed ({error})") from error
    if not resolved.is_relative_to(root.resolve()):
        raise UnsafePathError(
            f"{path} is a link to {quoted(str(resolved), 200)}, outside the baseline folder: remove the link"
        )
    return path


def refuse_linked(root: Path) -> None:
    """Raise ``UnsafePathError`` for a folder of baselines that is a link: it could be a link to any folder."""
    if root.is_symlink():
        raise UnsafePathError(
            f"{root} is a link, and a folder of baselines must not be one: nothing in it was read or written. Remove "
            "the link, or name the folder itself with --gpuperf-baselines"
        )


def evidence_files(root: Path, target: str) -> Iterator[tuple[str, Path]]:
    """Module and path of every evidence file of a target, sorted.  A missing folder has none.

    Folders that are links are not walked; raises ``UnsafePathError`` for a target that is one out of ``root``.
    """
    for path in sorted(inside(root, root / target).rglob("*.json")):
        module = module_of(PurePosixPath(path.relative_to(root / target).as_posix()))
        if path == evidence_path(root, target, module):
            yield module, path


def targets(root: Path) -> tuple[str, ...]:
    """Every architecture (in numeric order), then every GPU model (by name), that has at least one evidence file.

    Raises ``UnsafePathError`` for a folder that is a link out of ``root``, and does not walk it.
    """
    refuse_linked(root)
    try:
        names = [entry.name for entry in root.iterdir() if entry.is_dir()]
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise UnreadableBaselineError(root, f"the folder cannot be listed ({error.strerror})") from error
    archs = sorted(filter(is_arch, names), key=arch_order)
    devices = sorted(filter(is_device, names))
    return tuple(name for name in archs + devices if any(inside(root, root / name).rglob("*.json")))
