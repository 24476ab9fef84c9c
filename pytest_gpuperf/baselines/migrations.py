"""The version of the baseline files' layout, its history, and how older files are read.

History
-------
6   A time record may have figures ``beside`` its time: memory, time of the CPU, error.
5   A workload, static or timed, may have a ``config``: what an autotuner chose to compile.
4   One record per machine code, which workloads name; tests by function and parameters; of rounds what a judge reads;
    metrics by family; the commit of a session.  Cubins are compressed by LZMA, those of
    versions 2 and 3 by zlib.
3   Nothing that is still read.
2   Static profiles hold no estimate (``dry_run``); static records name the cubin that the kernel lies in, and its
    symbol where that is not the kernel's name.  Cubins are stored compressed (``.cubin.z``), those of version 1 as
    they are.
1   Static records had estimates.  ``kind`` (``static`` or ``time``) says what the file holds.
0   Pre-release.  No ``kind``: a file with ``toolchains`` held static evidence, any other held times.

A file of an older version is migrated in memory, one step at a time, whenever it is read; it is rewritten in the
current version when an update changes its content.  A newer version is refused.  A new version needs a line above, one
function in ``MIGRATIONS`` and one test with a file of the previous version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pytest_gpuperf.baselines.documents import document_of
from pytest_gpuperf.baselines.file_types import EvidenceFile, StaticFile, TimeFile

SCHEMA_VERSION = 6
_ROUND = ("session", "process", "midmean", "sm_clock_mhz")

Raw = dict[str, Any]


def _from_0(raw: Raw) -> Raw:
    return {**raw, "kind": "static" if "toolchains" in raw else "time"}


def _from_1(raw: Raw) -> Raw:
    """Leaves out estimates; what is not of the shape of a version 1 file stays for the types to refuse."""
    return _without_estimates(raw, "") if raw.get("kind") == "static" else raw


def _from_3(raw: Raw) -> Raw:
    """Every workload had all of its evidence, and a round its quantiles.  Raises what ``msgspec.convert`` raises."""
    file: EvidenceFile
    if raw.get("kind") == "static":
        file = msgspec.convert(raw, StaticFile)
    else:
        file = msgspec.convert(_without_samples(raw), TimeFile)
    tree: Raw = msgspec.to_builtins(document_of(file))
    return tree


def _as_it_is(raw: Raw) -> Raw:
    """Nothing to change: a record of the next version may have more, and this one has none of it."""
    return raw


def _without_samples(value: Any, name: str = "") -> Any:
    if name == "rounds" and isinstance(value, list):
        return [{key: one[key] for key in _ROUND if key in one} if isinstance(one, dict) else one for one in value]
    if isinstance(value, dict):
        return {key: _without_samples(inner, key) for key, inner in value.items()}
    return value


def _without_estimates(value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        return value
    if name == "profile":
        return {key: figure for key, figure in value.items() if key != "dry_run"}
    return {key: _without_estimates(inner, key) for key, inner in value.items()}


MIGRATIONS: Mapping[int, Callable[[Raw], Raw]] = {
    0: _from_0,
    1: _from_1,
    2: _as_it_is,
    3: _from_3,
    4: _as_it_is,
    5: _as_it_is,
}
"""From version N to N + 1.  A step sets what changed; ``migrate`` sets the version number."""


def migrate(raw: Raw, *, steps: Mapping[int, Callable[[Raw], Raw]] = MIGRATIONS, current: int = SCHEMA_VERSION) -> Raw:
    """Brings a decoded file up to ``current``.  Raises ``LookupError`` if no step leads on from its version."""
    while raw["schema"] < current:
        version = raw["schema"]
        raw = {**steps[version](raw), "schema": version + 1}
    return raw
