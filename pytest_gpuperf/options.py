"""Command-line flags and ini settings, turned into one frozen ``Options``.

A flag ``--gpuperf-foo-bar`` has the ini counterpart ``gpuperf_foo_bar``; the flag wins.  Everything is
validated when pytest starts: a bad value is a usage error that names the flag and what it accepts.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

UpdateMode = Literal["new", "changed", "all"]
Profile = Literal["tight", "standard", "loose"]


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """The indifference zone of a profile, as fractions (statistics 3)."""

    delta: float
    """Slower by no more than this is accepted."""
    epsilon: float
    """Slower by this must be detected."""


PROFILES: dict[str, Tolerance] = {
    "tight": Tolerance(0.005, 0.01),
    "standard": Tolerance(0.01, 0.02),
    "loose": Tolerance(0.02, 0.05),
}


@dataclasses.dataclass(frozen=True)
class Options:
    """What this run was asked to do."""

    enabled: bool = False
    """``--gpuperf``: measure, compare, gate."""
    update: UpdateMode | None = None
    """``--update-baselines[=MODE]``: rewrite baselines of workloads that are new, changed or all."""
    require_gpu: bool = False
    """No GPU is an error."""
    archs: tuple[str, ...] = ()
    """Static targets; empty: those with baselines, else the GPU's own."""
    baselines: Path = Path("baselines")
    """Folder of the baselines, absolute."""
    missing: Literal["fail", "warn"] = "warn"
    """What a workload without a baseline does; the default is ``fail`` under CI."""
    inconclusive: Literal["fail", "warn"] = "warn"
    strict: bool = False
    """A stale baseline (FASTER, BETTER) fails too."""
    profile: Profile = "tight"
    tolerance: float | None = None
    """Overrides the profile's delta; epsilon is twice as much."""
    cache: Literal["cold", "warm"] = "cold"
    timer: Literal["auto", "cupti", "graph", "events"] = "auto"
    rounds: int = 10
    """Rounds that ``--update-baselines`` records."""
    processes: int = 5
    """Fresh processes it spreads them over."""
    budget_s: float = 5.0
    """Wall-clock bound per workload."""
    allow_ci_update: bool = False
    force_update: bool = False
    """Take measurements that their own health checks call disturbed."""
    changed_only: bool = False
    """Workloads of equal identity are not timed."""
    ci: bool = False
    """The ``CI`` environment variable is set and not ``0`` or ``false``."""
    record_to: Path | None = None
    """Internal: this process records rounds for the parent's update into this folder."""
    record_index: int = 0

    @property
    def active(self) -> bool:
        """Whether anything is measured or compared."""
        return self.enabled or self.update is not None or self.record_to is not None
