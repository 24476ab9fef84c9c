"""``baselines/manifest.json``: what a team gates, so that a folder that is gone is missed, and a compiler is known.

An update adds targets and toolchains and removes none; ``gpuperf targets`` does both, and ``gpuperf prune --yes`` takes
those targets off whose folder is gone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from pytest_gpuperf.baselines import layout
from pytest_gpuperf.baselines.baseline_errors import (
    NewerSchemaError,
    UnreadableBaselineError,
    has_unprintable,
    quoted,
)
from pytest_gpuperf.baselines.parsing import read_bounded
from pytest_gpuperf.model.base_record import Record, schema_of
from pytest_gpuperf.model.evidence import is_known

FILE = "manifest.json"
SCHEMA = 2
MAX_BYTES = 1 << 20
MAX_NAME = 200


class Manifest(Record, frozen=True):
    """What the folder of the baselines has to have."""

    schema: int
    """``SCHEMA``; that of the evidence files is another number."""
    architectures: tuple[str, ...]
    """Static targets, in numeric order."""
    gpu_models: tuple[str, ...]
    """Time targets, by name."""
    toolchains: tuple[str, ...] = ()
    """Compilers whose static records the team keeps (``nvrtc 13.0.88``), by name; none in schema 1."""
    profile: str = ""
    """Tolerance profile of the first update; empty in schema 1."""
    named_by_kernels: tuple[str, ...] = ()
    """Those of the architectures that no run was asked for: only kernels that name them are compiled for them."""

    @property
    def targets(self) -> tuple[str, ...]:
        return (*self.architectures, *self.gpu_models)

    def gone_from(self, root: Path) -> tuple[str, ...]:
        """Targets that it names and the folder no longer has."""
        there = layout.targets(root)
        return tuple(target for target in self.targets if target not in there)


def read(root: Path) -> Manifest | None:
    """The manifest of a baseline folder; None if it has none.

    Raises ``UnreadableBaselineError`` and ``NewerSchemaError``.
    """
    path = layout.inside(root, root / FILE)
    content = read_bounded(path, MAX_BYTES) if root.is_dir() else None
    return None if content is None else decoded(content, path)


def decoded(content: bytes, path: Path) -> Manifest:
    """The manifest that a file's content is; ``path`` is for messages.  Raises as ``read``."""
    try:
        schema = schema_of(content)
        if schema > SCHEMA:
            raise NewerSchemaError(path, schema, SCHEMA)
        manifest = msgspec.json.decode(content, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        merging = content.startswith(b"<<<<<<< ") or b"\n<<<<<<< " in content
        raise UnreadableBaselineError(path, quoted(str(error), 400), merging=merging) from error
    except RecursionError:
        raise UnreadableBaselineError(path, "it is nested too deeply") from None
    odd = [name for name in (*manifest.architectures, *manifest.named_by_kernels) if not layout.is_arch(name)]
    odd += [name for name in manifest.gpu_models if not layout.is_device(name)]
    if odd:
        raise UnreadableBaselineError(path, f"'{quoted(odd[0])}' is no architecture or GPU model of its list")
    odd = [name for name in manifest.toolchains if not is_toolchain(name)]
    odd += [manifest.profile] if manifest.profile and not manifest.profile.isidentifier() else []
    if odd:
        raise UnreadableBaselineError(path, f"'{quoted(odd[0])}' is no toolchain with a version, or no profile")
    return manifest


def gone(root: Path) -> tuple[str, ...]:
    """Targets that the manifest names and the folder no longer has.  Raises what ``read`` raises."""
    manifest = read(root)
    return () if manifest is None else manifest.gone_from(root)


def with_targets(
    root: Path, new: Iterable[str], toolchains: Iterable[str] = (), profile: str = "",
    asked: Collection[str] | None = None,
) -> list[tuple[Path, bytes]]:  # fmt: skip
    """The write that adds targets to those on disk and in the manifest; none without any.  Raises as ``read``.

    ``profile`` is taken where the manifest has none.  ``asked`` are the architectures of the run: others that are new
    are those of kernels that name them; None asks for all that are new.
    """
    old = read(root) or Manifest(schema=0, architectures=(), gpu_models=())
    there = layout.targets(root) if root.is_dir() else ()
    known, new = {*old.targets, *there}, set(new)
    wanted = new if asked is None else set(asked)
    return _plan(
        root, old, targets=known | new, toolchains={*old.toolchains, *toolchains}, profile=old.profile or profile,
        named_by_kernels={*old.named_by_kernels, *(new - known)} - wanted,
    )  # fmt: skip


def without_targets(root: Path, names: Collection[str]) -> list[tuple[Path, bytes]]:
    """The write that takes targets and toolchains off the manifest; none without a manifest.  Raises as ``read``."""
    old = read(root)
    if old is None:
        return []
    return _plan(
        root, old, targets=set(old.targets).difference(names), toolchains=set(old.toolchains).difference(names),
        profile=old.profile, named_by_kernels=old.named_by_kernels,
    )  # fmt: skip


def is_toolchain(name: str) -> bool:
    """True for compilers with their versions: ``nvrtc 13.0.88``, ``triton 3.6.0, ptxas 13.0.88``."""
    return " " in name and is_known(name) and len(name) <= MAX_NAME and not has_unprintable(name)


def _plan(
    root: Path, old: Manifest, *, targets: set[str], toolchains: set[str], profile: str,
    named_by_kernels: Collection[str],
) -> list[tuple[Path, bytes]]:  # fmt: skip
    architectures = tuple(sorted(filter(layout.is_arch, targets), key=layout.arch_order))
    new = Manifest(
        schema=SCHEMA,
        architectures=architectures,
        gpu_models=tuple(sorted(filter(layout.is_device, targets))),
        toolchains=tuple(sorted(filter(is_toolchain, toolchains))),
        profile=profile,
        named_by_kernels=tuple(arch for arch in architectures if arch in named_by_kernels),
    )
    if new == old or (old.schema == 0 and not targets):
        return []
    return [(root / FILE, encoded(new))]


def encoded(manifest: Manifest) -> bytes:
    """The one way to print a manifest."""
    return (json.dumps(msgspec.to_builtins(manifest), indent=2, sort_keys=True) + "\n").encode()
