"""``Options``: what a run was asked to do, as ``parse_options`` reads it from flags and ini settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pytest_gpuperf.config.flags import USUAL_FOLDER
from pytest_gpuperf.model.timer_names import TimerName
from pytest_gpuperf.model.tolerance import PROFILES, Limits

if TYPE_CHECKING:
    from pytest_gpuperf.model.task import ChildTask
    from pytest_gpuperf.model.verdict import PairSlot

UpdateMode = Literal["new", "changed", "all"]
Action = Literal["fail", "warn"]

BUDGET_S = 5.0
"""For timing one workload, seconds."""
SUSTAINED_BUDGET_S = 320.0
"""The same with sustained slots: room for 28 blocks of four slots, each of up to 2.67 s, and for rounds."""


class Options:
    """What this run was asked to do; read, and never changed.

    Every pytest run imports this module: as a dataclass of as many fields it would take two milliseconds more.
    """

    enabled: bool = False
    """Measure, compare and gate."""
    update: UpdateMode | None = None
    """Rewrite baselines of workloads that are new, new or changed, or all of them."""
    named: tuple[str, ...] = ()
    """Node ids of tests that the command line names, with or without parameters; no files, folders or classes."""
    repeated: tuple[str, ...] = ()
    """Flags of this run, as they were given, that another one needs to judge and to record alike."""
    require_gpu: bool = False
    """No GPU is an error."""
    archs: tuple[str, ...] = ()
    """Static targets; empty: those with baselines, else the GPU's own."""
    baselines: Path = Path(USUAL_FOLDER)
    """Folder of the baselines, absolute."""
    against: str = ""
    """Git revision that takes the place of the baselines, as it was given; empty: none does."""
    against_python: Path | None = None
    """Python that runs the tests of that revision, absolute; None: this one."""
    open: Action = "warn"
    """What is not decided does: new, not compared, not reached, unexplained; the default is ``fail`` under CI."""
    missing: Action = "warn"
    """What a workload without a baseline does: ``open``, unless it was given."""
    without_gpu: Action = "warn"
    """What a workload does whose test needed a GPU before it: ``missing``, if that was given."""
    inconclusive: Action = "warn"
    """What a workload does that was not decided within its budget."""
    static_causes: Literal["exact", "off"] = "exact"
    """Whether causes that the machine code proves gate by themselves."""
    strict: bool = False
    """A stale baseline (FASTER, BETTER) fails too."""
    profile: str = "tight"
    """Key of ``tolerance.PROFILES``."""
    tolerance: float | None = None
    """Overrides the profile's tolerance; what must be found is twice as much."""
    cache: Literal["cold", "warm"] = "cold"
    """State of the L2 before each sample, where a test does not say otherwise."""
    timer: Literal["auto"] | TimerName = "auto"
    """``auto`` is the best that works on this machine."""
    budget_s: float | None = None
    """Wall-clock bound of timing one workload, seconds; None: ``BUDGET_S``, or ``SUSTAINED_BUDGET_S``."""
    changed_only: bool = False
    """Workloads of equal identity are not timed."""
    pair_all: bool = False
    """Workloads of equal identity are paired too, and count in the run's error rate."""
    pair_callables: Literal["auto", "always", "off"] = "auto"
    """Which callables are paired with the commit on their record: those that rounds do not pass, all, or none."""
    ncu: tuple[str, ...] = ()
    """Counters to collect: names of sets and of metrics; empty: none."""
    metrics: Mapping[str, float | None] = MappingProxyType({})
    """More metrics for every workload, with the tolerance that gates them."""
    ncu_timeout_s: float | None = None
    """Bound of collecting counters, seconds; None: by the number of tests."""
    ncu_json: Path | None = None
    """File to write every collected counter to."""
    explain: bool = False
    """State and causes of every workload in the summary, not only of red ones."""
    reports: tuple[str, ...] = ()
    """Files to write what the run found to, absolute, by their ending; ``github`` is the summary of a GitHub job."""
    nvrtc: Path | None = None
    """Folder with the NVRTC to compile with, absolute; None: the environment's."""
    allow_ci_update: bool = False
    """Baselines may be written although ``ci``."""
    trust_cubins: bool = False
    """Machine code of baselines may be launched although ``ci`` and brought along by the change under test."""
    force_update: bool = False
    """Record measurements that their own health checks call disturbed."""
    kernel_timeout_s: float = 60.0
    """Seconds for which a call may wait for the GPU before its kernel is called endless."""
    ci: bool = False
    """The ``CI`` environment variable is set (and not ``0`` or ``false``)."""
    task: ChildTask | None = None
    """Internal: what this process does for the run that started it; None: it was started by a user."""

    def __init__(self, **given: Any) -> None:
        """Fields by name; the others have their defaults.  Raises ``TypeError`` for a name that is none."""
        unknown = given.keys() - Options.__annotations__.keys()
        if unknown:
            raise TypeError(f"there is no option {', '.join(sorted(unknown))}")
        vars(self).update(given)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"the option {name} is read, not set")

    @property
    def active(self) -> bool:
        """Whether anything is measured or compared in this process."""
        return self.gates or self.is_child or bool(self.ncu)

    @property
    def gates(self) -> bool:
        """Whether static evidence is judged, and times are taken and judged."""
        return self.enabled or self.update is not None

    @property
    def times(self) -> bool:
        """Whether times are taken in this process."""
        return self.gates or (self.task is not None and self.task.takes_times)

    @property
    def is_child(self) -> bool:
        """Whether this process measures for another one and gates nothing itself."""
        return self.task is not None

    def budget(self, own: float | None, pair_slot: PairSlot) -> float:
        """Seconds for one workload after a test's ``own``; without one, as long as its slots ask for."""
        return own or self.budget_s or (SUSTAINED_BUDGET_S if pair_slot == "sustained" else BUDGET_S)

    def limits(self, tolerance: float | None = None, profile: str | None = None) -> Limits:
        """The limits after a test's own ``tolerance`` or ``profile``, the nearest word winning."""
        if tolerance is not None:
            return Limits(tolerance, 2 * tolerance)
        if profile is not None:
            return PROFILES[profile]
        if self.tolerance is not None:
            return Limits(self.tolerance, 2 * self.tolerance)
        return PROFILES[self.profile]
