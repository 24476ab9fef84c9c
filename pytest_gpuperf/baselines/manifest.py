"""``baselines/manifest.json``: the targets that an update has recorded, so that a folder that is gone is missed.

An update adds targets and removes none; ``gpuperf prune --yes`` takes those off whose folder is gone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from pytest_gpuperf.baselines import layout
from pytest_gpuperf.baselines.baseline_errors import NewerSchemaError, UnreadableBaselineError, quoted
from pytest_gpuperf.baselines.parsing import read_bounded
from pytest_gpuperf.model.evidence import Record

FILE = "manifest.json"
SCHEMA = 1
MAX_BYTES = 1 << 20


class Manifest(Record, frozen=True):
    """What the folder of the baselines has to have."""

    schema: int
    """``SCHEMA``; that of the evidence files is another number."""
    architectures: tuple[str, ...]
    """Static targets, in numeric order."""
    gpu_models: tuple[str, ...]
    """Time targets, by name."""

    @property
    def targets(self) -> tuple[str, ...]:
        return (*self.architectures, *self.gpu_models)


class _ManifestSchema(msgspec.Struct):
    schema: int


def read(root: Path) -> Manifest | None:
    """The manifest of a baseline folder; None if it has none.

    Raises ``UnreadableBaselineError`` and ``NewerSchemaError``.
    """
    path = layout.inside(root, root / FILE)
    content = read_bounded(path, MAX_BYTES) if root.is_dir() else None
    if content is None:
        return None
    try:
        schema = msgspec.json.decode(content, type=_ManifestSchema).schema
        if schema > SCHEMA:
            raise NewerSchemaError(path, schema, SCHEMA)
        manifest = msgspec.json.decode(content, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        merging = content.startswith(b"<<<<<<< ") or b"\n<<<<<<< " in content
        raise UnreadableBaselineError(path, quoted(str(error), 400), merging=merging) from error
    except RecursionError:
        raise UnreadableBaselineError(path, "it is nested too deeply") from None
    odd = [name for name in manifest.architectures if not layout.is_arch(name)]
    odd += [name for name in manifest.gpu_models if not layout.is_device(name)]
    if odd:
        raise UnreadableBaselineError(path, f"'{quoted(odd[0])}' is no architecture or GPU model of its list")
    return manifest


def gone(root: Path) -> tuple[str, ...]:
    """Targets that the manifest names and the folder no longer has.  Raises what ``read`` raises."""
    manifest = read(root)
    if manifest is None:
        return ()
    there = layout.targets(root)
    return tuple(target for target in manifest.targets if target not in there)


def with_targets(root: Path, new: Iterable[str]) -> list[tuple[Path, bytes]]:
    """The write that adds targets to those on disk and in the manifest; none without any.  Raises as ``read``."""
    old = read(root)
    there = layout.targets(root) if root.is_dir() else ()
    return _plan(root, {*(old.targets if old else ()), *there, *new}, old)


def without_targets(root: Path, names: Collection[str]) -> list[tuple[Path, bytes]]:
    """The write that takes targets off the manifest; none without a manifest.  Raises as ``read``."""
    old = read(root)
    return _plan(root, set(old.targets).difference(names), old) if old else []


def _plan(root: Path, targets: set[str], old: Manifest | None) -> list[tuple[Path, bytes]]:
    new = Manifest(
        schema=SCHEMA,
        architectures=tuple(sorted(filter(layout.is_arch, targets), key=layout.arch_order)),
        gpu_models=tuple(sorted(filter(layout.is_device, targets))),
    )
    if new == old or (old is None and not targets):
        return []
    return [(root / FILE, (json.dumps(msgspec.to_builtins(new), indent=2, sort_keys=True) + "\n").encode())]
