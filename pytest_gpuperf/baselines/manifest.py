"""``baselines/manifest.json``: the targets of a team, so that a missing folder is noticed, and their compilers.

An update adds targets and toolchains; ``gpuperf baselines rm`` takes them off.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping

import msgspec

from pytest_gpuperf.baselines import layout
from pytest_gpuperf.baselines.baseline_errors import has_unprintable, quoted, unreadable
from pytest_gpuperf.baselines.records import refuse_conflict
from pytest_gpuperf.model.evidence import Record, is_known, schema_of

FILE = "manifest.json"
SCHEMA = 2
MAX_BYTES = 1 << 20


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
    roofs: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    """By GPU model: bytes or operations per second by the names of ``model.roofs.ROOFS``, measured once."""

    @property
    def targets(self) -> tuple[str, ...]:
        return (*self.architectures, *self.gpu_models)

    def encoded(self) -> bytes:
        return (json.dumps(msgspec.to_builtins(self), indent=2, sort_keys=True) + "\n").encode()


def manifest_of(
    targets: Collection[str], toolchains: Collection[str], named: Collection[str],
    roofs: Mapping[str, Mapping[str, float]] | None = None,
) -> Manifest:  # fmt: skip
    """That of these targets and compilers; ``named`` are architectures that no run was asked for, if any at all."""
    archs = tuple(sorted(filter(layout.is_arch, targets), key=layout.arch_order))
    return Manifest(
        schema=SCHEMA, architectures=archs, gpu_models=tuple(sorted(filter(layout.is_device, targets))),
        toolchains=tuple(sorted(filter(is_known, toolchains))),
        named_by_kernels=tuple(arch for arch in archs if arch in named),
        roofs={gpu: {name: float(f"{one:.4g}") for name, one in found.items()}
               for gpu, found in (roofs or {}).items() if gpu in targets},
    )  # fmt: skip


def decoded(content: bytes, place: object) -> Manifest:
    """The manifest that a file's content is; ``place`` names it in messages.  Raises ``BaselineError``."""
    refuse_conflict(content, place)
    if len(content) > MAX_BYTES:
        raise unreadable(place, "it is larger than 1 MB")
    try:
        schema = schema_of(content)
        if schema > SCHEMA:
            raise unreadable(place, f"its schema is {schema}, and this pytest-gpuperf reads {SCHEMA}: upgrade it")
        manifest = msgspec.json.decode(content, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable(place, quoted(str(error), 400)) from error
    odd = [name for name in (*manifest.architectures, *manifest.named_by_kernels) if not layout.is_arch(name)]
    odd += [name for name in manifest.gpu_models if not layout.is_device(name)]
    odd += list(filter(has_unprintable, manifest.toolchains))
    if odd:
        raise unreadable(place, f"'{quoted(odd[0])}' is no architecture, GPU model or compiler")
    if not all(0 <= one < math.inf for found in manifest.roofs.values() for one in found.values()):
        raise unreadable(place, "a roof is no rate")
    return manifest
