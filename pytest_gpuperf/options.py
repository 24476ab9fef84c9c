"""``Options``: what a run was asked to do, and the one table of its flags and ini settings.

A field of ``Options`` with a flag says in one place how the flag is called, how its value is read and what it means.
A flag ``--gpuperf-foo-bar`` has the ini setting ``gpuperf_foo_bar``; the flag wins.  A flag that concerns a single run
has none.  ``read_options`` reads them.  Keywords of the marker are in ``arguments``.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pytest_gpuperf.model.architectures import SPELLINGS
from pytest_gpuperf.model.limits import MOST_BUDGET_S, MOST_DELTA_US, TIMERS, TOLERANCES, Limits, TimerName, is_metric

if TYPE_CHECKING:
    from pytest_gpuperf.model.task import ChildTask

UpdateMode = Literal["new", "changed", "all"]
Action = Literal["fail", "warn"]

USUAL_FOLDER = "baselines"
"""Default folder of the baselines, below pytest's root."""
UPDATE_MODES = ("new", "changed", "all")
METRIC_SETS = ("default", "memory", "compute", "latency", "full")
REPORT_ENDINGS = (".json", ".md", ".html")
GITHUB = "github"
"""In the place of a report's file: the summary of the GitHub job that the run is in."""

# --- kinds of values -----------------------------------------------------------------------------


class Kind(NamedTuple):
    accepts: str
    """In words."""
    read: Callable[[str], Any]
    """Raises ``ValueError`` for text that it does not accept."""


def _one_of(*choices: str) -> Kind:
    return Kind(", ".join(choices), lambda text: choices[choices.index(text)])


def _number(low: float, high: float, unit: str = "") -> Kind:
    def read(text: str) -> float:
        if not low <= (number := float(text)) <= high:
            raise ValueError(text)
        return number

    return Kind(f"a number from {low:g} to {high:g}{unit}", read)


def _tolerance(low: float, high: float) -> Kind:
    number = _number(low, high)
    words = ", ".join(f"{name} ({value:g})" for name, value in TOLERANCES.items())
    return Kind(f"{words}, or {number.accepts}", lambda text: TOLERANCES.get(text) or number.read(text))


def _list_of(is_item: Callable[[str], bool], accepts: str) -> Kind:
    def read(text: str) -> tuple[str, ...]:
        items = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
        if not items or not all(map(is_item, items)):
            raise ValueError(text)
        return items

    return Kind(accepts, read)


SWITCH = Kind("true or false", bool)
FOLDER, ENVIRONMENT, REVISION = (Kind(name, str) for name in ("a folder", "a folder or a Python", "a git revision"))
HERE = "this working tree"
"""The value of ``against`` where another environment runs the tests of no other revision."""
ARCHITECTURES = _list_of(SPELLINGS.__contains__, f"architectures separated by commas, of {', '.join(SPELLINGS)}")
METRIC_NAMES = _list_of(
    lambda word: word in METRIC_SETS or is_metric(word),
    f"{', '.join(METRIC_SETS)}, and names of metrics, separated by commas",
)
REPORTS = _list_of(
    lambda name: name == GITHUB or name.endswith(REPORT_ENDINGS),
    f"files that end in {', '.join(REPORT_ENDINGS)}, and {GITHUB}, separated by commas",
)


# --- the table -----------------------------------------------------------------------------------


class Flag(NamedTuple):
    """One command-line flag and its ini setting."""

    name: str
    help: str
    kind: Kind = SWITCH
    metavar: str | None = None
    ini: Literal["bool", "string", "float", "float or string", ""] = ""
    """Type of the ini setting; empty: there is none."""
    bare: str | None = None
    """Value of the flag given without one."""

    @property
    def ini_name(self) -> str:
        return self.name.lstrip("-").replace("-", "_")


def _flag(default: Any, name: str, help: str, kind: Kind = SWITCH, **how: Any) -> Any:
    return dataclasses.field(default=default, metadata={"flag": Flag(name, help, kind, **how)})


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Options:
    """The options of a run; the help of a flag describes its field."""

    # fmt: off
    enabled: bool = _flag(
        False, "--gpuperf", "measure GPU workloads, compare them with their baselines, fail regressions", ini="bool")
    update: UpdateMode | None = _flag(
        None, "--update-baselines", "record baselines: new (workloads that have none), changed (the default: these, "
        "and proven changes) or all", _one_of(*UPDATE_MODES), metavar="MODE",
        bare="changed")
    disturbed: bool = _flag(
        False, "--gpuperf-disturbed", "also record measurements that other work on the GPU disturbed")
    allow_ci_update: bool = _flag(False, "--gpuperf-allow-ci-update", "let --update-baselines write under CI")
    baselines: Path = _flag(
        Path(USUAL_FOLDER), "--gpuperf-baselines", "folder of the baselines (default: baselines, next to the ini file)",
        FOLDER, metavar="DIR", ini="string")
    """Absolute."""
    against: str = _flag(
        "", "--gpuperf-against",
        "compare with a git revision instead of with baselines: a commit, a branch or merge-base:main", REVISION,
        metavar="REF")
    against_env: Path | None = _flag(
        None, "--gpuperf-against-env",
        "compare with another Python environment: its tests are the revision's, or these of the working tree",
        ENVIRONMENT, metavar="PATH")
    """Its Python, absolute."""
    require_gpu: bool = _flag(False, "--gpuperf-require-gpu", "fail at once if there is no usable GPU", ini="bool")
    archs: tuple[str, ...] = _flag(
        (), "--gpuperf-arch",
        "static targets (default: those with baselines, else the GPU's own, else sm_80, sm_90, sm_100 and sm_120)",
        ARCHITECTURES, metavar="sm_80,sm_90", ini="string")
    open: Action = _flag(
        "warn", "--gpuperf-open", "unproven verdicts: fail or warn (default: INCONCLUSIVE warns; NEW, NOT-COMPARABLE "
        "and NOT-MEASURED fail under CI and warn elsewhere)", _one_of("fail", "warn"), metavar="ACTION", ini="string")
    """For NOT-COMPARABLE and NOT-MEASURED; under CI ``fail`` is the default."""
    strict: bool = _flag(False, "--gpuperf-strict", "fail on a stale baseline too (FASTER, BETTER)", ini="bool")
    advisory: bool = _flag(False, "--gpuperf-advisory", "report every verdict, and let none fail a test", ini="bool")
    tolerance: float = _flag(
        TOLERANCES["standard"], "--gpuperf-tolerance",
        "accepted slowdown: tight, standard (default), loose or a fraction; twice as much is detected",
        _tolerance(0.0005, 0.5), metavar="FRACTION", ini="float or string")
    min_delta_us: float = _flag(
        0.0, "--gpuperf-min-delta", "accepted slowdown in microseconds (default 0), where that is more",
        _number(0, MOST_DELTA_US, " microseconds"), metavar="US", ini="float")
    cache: Literal["cold", "warm"] = _flag(
        "cold", "--gpuperf-cache", "L2 state before each sample: cold (flushed, default) or warm",
        _one_of("cold", "warm"), metavar="STATE", ini="string")
    timer: Literal["auto"] | TimerName = _flag(
        "auto", "--gpuperf-timer", f"auto (default: the best that works), {' or '.join(TIMERS)}",
        _one_of("auto", *TIMERS), metavar="NAME", ini="string")
    budget_s: float = _flag(
        5.0, "--gpuperf-budget", "wall-clock seconds for timing one workload (default 5)",
        _number(0.05, MOST_BUDGET_S, " seconds"), metavar="SECONDS", ini="float")
    time: Literal["auto", "changed", "all"] = _flag(
        "auto", "--gpuperf-time", "workloads to time: changed (no unchanged ones), all (compare each with its "
        "baseline) or auto (default: compare those that may have changed, and time the others once)",
        _one_of("changed", "all", "auto"), metavar="WHICH", ini="string")
    ncu: tuple[str, ...] = _flag(
        (), "--gpuperf-ncu", "collect and gate hardware counters with Nsight Compute: default, memory, compute, "
        "latency, full, or names of metrics", METRIC_NAMES, metavar="SET", bare="default", ini="string")
    reports: tuple[str, ...] = _flag(
        (), "--gpuperf-report",
        "write a report to files that end in .json, .md or .html; github: the summary of the GitHub job", REPORTS,
        metavar="FILE,...", ini="string")
    """Absolute, or ``github``."""
    kernel_timeout_s: float = _flag(
        60.0, "--gpuperf-kernel-timeout",
        "seconds after which a running kernel counts as endless (default 60)",
        _number(1, 86400, " seconds"), metavar="SECONDS", ini="float")
    task: ChildTask | None = _flag(None, "--gpuperf-task", argparse.SUPPRESS, FOLDER)
    """The task of a child process; None in a process that a user started."""
    # fmt: on
    undecided: Action = "warn"
    """For INCONCLUSIVE, and for records that need a GPU on a machine without one: ``open`` if it was given."""
    ci: bool = False
    """A CI service runs this."""
    repeated: tuple[str, ...] = ()
    """Flags of this run, as they were given, that another one needs to judge and to record alike."""

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

    @property
    def against_flags(self) -> list[str]:
        """The flags that name the other side of a comparison."""
        flags = [f"--gpuperf-against={self.against}"] if self.against not in ("", HERE) else []
        return flags + ([f"--gpuperf-against-env={self.against_env}"] if self.against_env is not None else [])

    @property
    def new(self) -> Action:
        """For NEW: a workload that a revision lacks only gets a warning."""
        return "warn" if self.against else self.open

    def limits(self, own: float | str | None = None) -> Limits:
        """The limits of a test, after its ``own`` tolerance or profile."""
        tolerance = self.tolerance if own is None else TOLERANCES[own] if isinstance(own, str) else float(own)
        return Limits(tolerance, 2 * tolerance)


FLAGS: Mapping[str, Flag] = {
    one.name: one.metadata["flag"] for one in dataclasses.fields(Options) if "flag" in one.metadata
}
"""By field of ``Options``."""
