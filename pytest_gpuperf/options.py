"""Command-line flags and ini settings, turned into one frozen ``Options``.

A flag ``--gpuperf-foo-bar`` has the ini counterpart ``gpuperf_foo_bar``; the flag wins.  Everything is
validated when pytest starts: a bad value is a usage error that names the flag and what it accepts.
Flags that write baselines have no ini counterpart: a run that rewrites the reference is asked for each
time.  Marker keywords are in ``marker.py``.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_gpuperf.conflicts import refuse_conflicts
from pytest_gpuperf.flags import FLAGS, GITHUB, USUAL_FOLDER, BadValue, Flag
from pytest_gpuperf.tolerance import PROFILES, Tolerance

if TYPE_CHECKING:
    from pytest_gpuperf.verdict import PairSlot

UpdateMode = Literal["new", "changed", "all"]

BUDGET_S = 5.0
"""For timing one workload, seconds."""
SUSTAINED_BUDGET_S = 320.0
"""The same with sustained slots: room for 28 blocks of four slots, each of up to 2.67 s, and for rounds."""


class Options:
    """What this run was asked to do.  Does not change once it is made.

    Not a data class: this module is imported by every pytest run, and making a data class or a named tuple of
    this size takes milliseconds.
    """

    def __init__(self, **given: Any) -> None:
        unknown = sorted(set(given) - set(Options.__annotations__))
        if unknown:
            raise TypeError(f"Options has no {', '.join(unknown)}")
        self.__dict__.update(given)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Options does not change: {name} was set")

    enabled: bool = False
    """Measure, compare and gate."""
    update: UpdateMode | None = None
    """Rewrite baselines of workloads that are new, new or changed, or all of them."""
    require_gpu: bool = False
    """No GPU is an error."""
    archs: tuple[str, ...] = ()
    """Static targets; empty: those with baselines, else the GPU's own."""
    baselines: Path = Path(USUAL_FOLDER)
    """Folder of the baselines, absolute."""
    missing: Literal["fail", "warn"] = "warn"
    """What a workload without a baseline does; the default is ``fail`` under CI."""
    unreached: Literal["fail", "warn"] = "warn"
    """What a workload does that has a baseline, in a test that stopped before it: ``missing``, if that was given."""
    inconclusive: Literal["fail", "warn"] = "warn"
    """What a workload does that was not decided within its budget."""
    strict: bool = False
    """A stale baseline (FASTER, BETTER) fails too."""
    profile: str = "tight"
    """Key of ``tolerance.PROFILES``."""
    tolerance: float | None = None
    """Overrides the profile's delta; epsilon is twice as much."""
    cache: Literal["cold", "warm"] = "cold"
    """State of the L2 before each sample, where a test does not say otherwise."""
    timer: Literal["auto", "cupti", "graph", "events"] = "auto"
    """``auto`` is the best that works on this machine."""
    rounds: int = 10
    """Rounds that an update records per workload."""
    processes: int = 5
    """Fresh processes it spreads them over."""
    budget_s: float | None = None
    """Wall-clock bound of timing one workload, seconds; None: ``BUDGET_S``, or ``SUSTAINED_BUDGET_S``."""
    changed_only: bool = False
    """Workloads of equal identity are not timed."""
    pair_all: bool = False
    """Workloads of equal identity are paired too, and count in the run's error rate."""
    confirmations: int = 20
    """Tests per process whose suspected regressions are confirmed in a second process."""
    ncu: tuple[str, ...] = ()
    """Counters to collect: names of sets and of metrics; empty: none."""
    metrics: dict[str, float | None] = {}  # noqa: RUF012 - not a data class, and nobody changes it
    """More metrics for every workload, with the tolerance that gates them."""
    ncu_timeout_s: float | None = None
    """Bound of collecting counters, seconds; None: by the number of tests."""
    ncu_json: Path | None = None
    """File to write every collected counter to."""
    explain: bool = False
    """State and causes of every workload in the summary, not only of red ones."""
    reports: tuple[str, ...] = ()
    """Files to write what the run found to, absolute, by their ending; ``github`` is the summary of a GitHub job."""
    allow_ci_update: bool = False
    """Baselines may be written although ``ci``."""
    force_update: bool = False
    """Record measurements that their own health checks call disturbed."""
    ci: bool = False
    """The ``CI`` environment variable is set (and not ``0`` or ``false``)."""
    record_to: Path | None = None
    """Internal: this process records rounds into this folder for the update that started it."""
    record_index: int = 0
    """Internal: which of the update's ``processes`` this is, from 0."""
    confirm_to: Path | None = None
    """Internal: this process confirms suspected regressions for the run that started it, by way of this folder."""
    ncu_to: Path | None = None
    """Internal: this process runs under ncu for the run that started it, by way of this folder."""

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
        return self.gates or self.record_to is not None or self.confirm_to is not None

    @property
    def rounds_of_this_process(self) -> int:
        """How many of an update's rounds this process takes: as even a share as there is."""
        share, rest = divmod(self.rounds, self.processes)
        return max(1, share + (self.record_index < rest))

    @property
    def is_child(self) -> bool:
        """Whether this process measures for another one and gates nothing itself."""
        return any(folder is not None for folder in (self.record_to, self.confirm_to, self.ncu_to))

    def budget(self, own: float | None, pair_slot: PairSlot) -> float:
        """Seconds for one workload after a test's ``own``; what nobody gave is as long as its slots ask for."""
        return own or self.budget_s or (SUSTAINED_BUDGET_S if pair_slot == "sustained" else BUDGET_S)

    def zone(self, tolerance: float | None = None, profile: str | None = None) -> Tolerance:
        """The indifference zone after a test's own ``tolerance`` or ``profile``, the nearest word winning."""
        if tolerance is not None:
            return Tolerance(tolerance, 2 * tolerance)
        if profile is not None:
            return PROFILES[profile]
        if self.tolerance is not None:
            return Tolerance(self.tolerance, 2 * self.tolerance)
        return PROFILES[self.profile]


def add_options(parser: pytest.Parser) -> None:
    """Declare every flag and its ini setting."""
    import argparse

    group = parser.getgroup("gpuperf", "performance regression tests of GPU kernels")
    for flag in FLAGS:
        help_text = argparse.SUPPRESS if flag.hidden else flag.help
        dest = f"gpuperf_{flag.field}"
        if flag.parse is None:
            group.addoption(flag.name, dest=dest, action="store_true", default=None, help=help_text)
        elif flag.const is not None:
            group.addoption(flag.name, dest=dest, nargs="?", const=flag.const, default=None,
                            metavar=flag.metavar, help=help_text)  # fmt: skip
        else:
            group.addoption(flag.name, dest=dest, default=None, metavar=flag.metavar, help=help_text)
        if flag.ini:
            kind: Literal["bool", "string"] = "bool" if flag.parse is None else "string"
            parser.addini(flag.ini_name, flag.help.replace("%%", "%"), type=kind, default=None)


def spell_out_defaults(arguments: list[str]) -> None:
    """Give a bare ``--update-baselines`` its value, and its like, so that they do not take the path after them."""
    defaults = {flag.name: flag.const for flag in FLAGS if flag.const is not None}
    arguments[:] = [f"{word}={defaults[word]}" if word in defaults else word for word in arguments]


def keep_modules_together(config: pytest.Config) -> None:
    """Let pytest-xdist hand out runs of neighbouring tests where the user does not say how: ``--dist worksteal``.

    Its own default deals tests out one by one, so every worker compiles and prepares what the tests of a module
    share: on two GPUs the example suite was 1.4 times as fast with it as on one.  Has to come before pytest-xdist's
    ``pytest_cmdline_main``.
    """
    if config.getoption("numprocesses", None) and config.getoption("dist") == "no" and read_options(config).active:
        config.option.dist = "worksteal"


def is_ci(environ: dict[str, str] | os._Environ[str]) -> bool:
    """Whether this looks like a continuous-integration run: ``CI`` set, and not to ``0`` or ``false``."""
    return environ.get("CI", "").lower() not in ("", "0", "false", "no")


def read_options(config: pytest.Config) -> Options:
    """Flags over ini settings over defaults.  Raises ``pytest.UsageError``."""
    values: dict[str, Any] = {"ci": is_ci(os.environ)}
    for flag in FLAGS:
        given = config.getoption(f"gpuperf_{flag.field}")
        origin = flag.name
        if given is None and flag.ini:
            given = _ini(config, flag)
            origin = f"ini setting {flag.ini_name}"
        if given is None or (given == "" and origin != flag.name):
            continue
        if given == "":
            raise pytest.UsageError(f"{origin}: it was given without a value; leave it out, or give it one")
        values[flag.field] = _parse(flag, given, origin)
    if config.getoption("gpuperf_profile") is not None and config.getoption("gpuperf_tolerance") is None:
        values.pop("tolerance", None)  # the flag for a profile takes the place of the ini setting for a tolerance
    values["baselines"] = _baselines(config, values.get("baselines", USUAL_FOLDER))
    for field in ("record_to", "confirm_to", "ncu_to"):
        if field in values:  # the ini file may ask for a gate or an update, which is for the parent to do
            values.update({field: Path(values[field]), "enabled": False, "update": None, "changed_only": False,
                           "ncu": (), "ncu_json": None, "reports": ()})  # fmt: skip
    if values.get("ncu_json"):
        values["ncu_json"] = _file(config, values["ncu_json"], bool(values.get("ncu")))
    values["reports"] = tuple(_report(config, name) for name in values.get("reports", ()))
    values["unreached"] = values.get("missing", "warn")  # under CI too: times are for the runner with a GPU
    options = Options(**{"missing": "fail" if values["ci"] else "warn", **values})
    refuse_conflicts(config, options)
    return options


def _ini(config: pytest.Config, flag: Flag) -> Any:
    """Its value, None where no file has it.  Raises ``pytest.UsageError``."""
    try:
        return config.getini(flag.ini_name)
    except (ValueError, pytest.UsageError) as problem:
        if flag.parse is not None:
            raise
        words = f"ini setting {flag.ini_name} is not valid: it accepts true or false ({problem})"
        raise pytest.UsageError(words) from None


def _parse(flag: Flag, given: Any, origin: str) -> Any:
    if flag.parse is None:
        return given
    try:
        return flag.parse(str(given))
    except BadValue as problem:
        raise pytest.UsageError(f"{origin}: {given!r} is not valid: it {problem}") from None


def _baselines(config: pytest.Config, given: str) -> Path:
    """An ini setting is relative to pytest's root; a flag, like every path at a prompt, to the current folder."""
    return _path(config, given, by_hand=config.getoption("gpuperf_baselines") is not None)


def _path(config: pytest.Config, given: str, *, by_hand: bool) -> Path:
    start = config.invocation_params.dir if by_hand else config.rootpath
    return Path(os.path.normpath(start / Path(given).expanduser()))


def _file(config: pytest.Config, given: str, ncu: bool) -> Path:
    path: Path = config.invocation_params.dir / given
    if not ncu:
        raise pytest.UsageError(f"--gpuperf-ncu-json={given}: there is nothing to write without --gpuperf-ncu")
    if not path.parent.is_dir():
        raise pytest.UsageError(f"--gpuperf-ncu-json={given}: there is no folder {path.parent}")
    return path


def _report(config: pytest.Config, given: str) -> str:
    """As with baselines, a flag's is relative to the current folder and an ini setting's to pytest's root."""
    if given == GITHUB:
        return given
    by_hand = config.getoption("gpuperf_reports") is not None
    name = "--gpuperf-report" if by_hand else "ini setting gpuperf_report"
    path = _path(config, given, by_hand=by_hand)
    if not path.parent.is_dir():
        raise pytest.UsageError(f"{name}: {given}: there is no folder {path.parent}: make it, or name another file")
    if path.is_dir():
        raise pytest.UsageError(f"{name}: {given} is a folder: name a file")
    if path.suffix == ".html" and importlib.util.find_spec("jinja2") is None:
        raise pytest.UsageError(f"{name}: {given} needs jinja2: pip install 'pytest-gpuperf[html]', or name a .md file")
    return str(path)


def forwarded(options: Options) -> Sequence[str]:
    """The flags under which a child process measures exactly as this one does."""
    arguments = [f"--gpuperf-baselines={options.baselines}", f"--gpuperf-cache={options.cache}",
                 f"--gpuperf-timer={options.timer}", f"--gpuperf-profile={options.profile}",
                 f"--gpuperf-rounds={options.rounds}", f"--gpuperf-processes={options.processes}"]  # fmt: skip
    if options.budget_s is not None:
        arguments.append(f"--gpuperf-budget={options.budget_s:g}")
    if options.archs:
        arguments.append(f"--gpuperf-arch={','.join(options.archs)}")
    if options.tolerance is not None:
        arguments.append(f"--gpuperf-tolerance={options.tolerance:g}")
    return arguments
