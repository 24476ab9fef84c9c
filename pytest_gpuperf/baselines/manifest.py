"""``baselines/manifest.json``: what a team gates, so that a folder that is gone is missed, and a compiler is known.

An update adds targets and toolchains; ``gpuperf baselines rm`` takes them off.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from pytest_gpuperf.baselines import layout
from pytest_gpuperf.baselines.baseline_errors import has_unprintable, quoted, unreadable
from pytest_gpuperf.baselines.records import read_bounded, refuse_conflict
from pytest_gpuperf.model.evidence import Record, is_known, schema_of

FILE = "manifest.json"
SCHEMA = 2
MAX_BYTES = 1 << 20
MAX_NAME = 200


class Manifest(Record, frozen=True):
    """What the folder of the baselines has to have."""

    schema: int
    """``SCHEMA``; that of the files of records is another number."""
    architectures: tuple[str, ...]
    """Static targets, in numeric order."""
    gpu_models: tuple[str, ...]
    """Time targets, by name."""
    toolchains: tuple[str, ...] = ()
    """Compilers whose static records the team keeps (``nvrtc 13.0.88``), by name."""
    named_by_kernels: tuple[str, ...] = ()
    """Those of the architectures that no run was asked for: only kernels that name them are compiled for them."""

    @property
    def targets(self) -> tuple[str, ...]:
        return (*self.architectures, *self.gpu_models)

    def gone_from(self, root: Path) -> tuple[str, ...]:
        """Targets that it names and the folder no longer has records of."""
        return tuple(one for one in self.targets if not any((root / one).rglob(f"*{layout.RECORDS}")))


def read(root: Path) -> Manifest | None:
    """The manifest of a baseline folder; None if it has none.  Raises ``BaselineError``."""
    path = layout.inside(root, root / FILE)
    content = read_bounded(path, MAX_BYTES) if root.is_dir() else None
    return None if content is None else decoded(content, path)


def decoded(content: bytes, place: object) -> Manifest:
    """The manifest that a file's content is; ``place`` names it in messages.  Raises ``BaselineError``."""
    refuse_conflict(content, place)
    try:
        schema = schema_of(content)
        if schema > SCHEMA:
            raise unreadable(place, f"its schema is {schema}, and this pytest-gpuperf reads {SCHEMA}: upgrade it")
        manifest = msgspec.json.decode(content, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable(place, quoted(str(error), 400)) from error
    odd = [name for name in (*manifest.architectures, *manifest.named_by_kernels) if not layout.is_arch(name)]
    odd += [name for name in manifest.gpu_models if not layout.is_device(name)]
    odd += [name for name in manifest.toolchains if not is_toolchain(name)]
    if odd:
        raise unreadable(place, f"'{quoted(odd[0])}' is no architecture, GPU model or compiler")
    return manifest


def with_targets(
    root: Path, there: Collection[str], new: Collection[str], toolchains: Iterable[str],
    asked: Collection[str] | None = None,
) -> list[tuple[Path, bytes]]:  # fmt: skip
    """The write that adds ``new`` targets and compilers to those ``there`` and listed; none if nothing is new.

    ``asked`` are the architectures of the run: others that are new are those of kernels that name them; None asks for
    all that are new.
    """
    old = read(root) or Manifest(schema=0, architectures=(), gpu_models=())
    known = {*old.targets, *there}
    named = {*old.named_by_kernels, *set(new) - known}.difference(new if asked is None else asked)
    return _write(root, old, known.union(new), {*old.toolchains, *toolchains}, named)


def without(root: Path, name: str) -> list[tuple[Path, bytes]]:
    """The write that takes a target or a compiler off the manifest; none without it.  Raises ``BaselineError``."""
    old = read(root)
    if old is None or name not in (*old.targets, *old.toolchains):
        return []
    return _write(root, old, set(old.targets) - {name}, set(old.toolchains) - {name}, old.named_by_kernels)


def is_toolchain(name: str) -> bool:
    """True for compilers with their versions: ``nvrtc 13.0.88``, ``triton 3.6.0, ptxas 13.0.88``."""
    return " " in name and is_known(name) and len(name) <= MAX_NAME and not has_unprintable(name)


def _write(
    root: Path, old: Manifest, targets: Collection[str], toolchains: Collection[str], named: Collection[str]
) -> list[tuple[Path, bytes]]:
    archs = tuple(sorted(filter(layout.is_arch, targets), key=layout.arch_order))
    new = Manifest(
        schema=SCHEMA, architectures=archs, gpu_models=tuple(sorted(filter(layout.is_device, targets))),
        toolchains=tuple(sorted(filter(is_toolchain, toolchains))),
        named_by_kernels=tuple(arch for arch in archs if arch in named),
    )  # fmt: skip
    if new == old or not (old.schema or targets):
        return []
    return [(root / FILE, (json.dumps(msgspec.to_builtins(new), indent=2, sort_keys=True) + "\n").encode())]
