"""Command-line flags and ini settings, turned into one frozen ``Options``.

A flag ``--gpuperf-foo-bar`` has the ini counterpart ``gpuperf_foo_bar``; the flag wins.  Everything is
validated when pytest starts: a bad value is a usage error that names the flag and what it accepts.
Flags that write baselines have no ini counterpart: a run that rewrites the reference is asked for each
time.  Marker keywords are in ``marker.py``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import pytest

UpdateMode = Literal["new", "changed", "all"]


class Tolerance(NamedTuple):
    """The indifference zone of a profile, as fractions of the baseline's time."""

    delta: float
    """Slower by no more than this is accepted."""
    epsilon: float
    """Slower by this must be detected."""


PROFILES: dict[str, Tolerance] = {
    "tight": Tolerance(0.005, 0.01),
    "standard": Tolerance(0.01, 0.02),
    "loose": Tolerance(0.02, 0.05),
}


class Options(NamedTuple):
    """What this run was asked to do.

    A named tuple rather than a data class: this module is imported by every pytest run, and making a data
    class of this size takes milliseconds.
    """

    enabled: bool = False
    """Measure, compare and gate."""
    update: UpdateMode | None = None
    """Rewrite baselines of workloads that are new, new or changed, or all of them."""
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
    profile: str = "tight"
    tolerance: float | None = None
    """Overrides the profile's delta; epsilon is twice as much."""
    cache: Literal["cold", "warm"] = "cold"
    timer: Literal["auto", "cupti", "graph", "events"] = "auto"
    rounds: int = 10
    """Rounds that an update records per workload."""
    processes: int = 5
    """Fresh processes it spreads them over."""
    budget_s: float = 5.0
    """Wall-clock bound of timing one workload, seconds."""
    changed_only: bool = False
    """Workloads of equal identity are not timed."""
    pair_all: bool = False
    """Workloads of equal identity are paired too, and count in the run's error rate."""
    confirmations: int = 20
    """Tests per process whose suspected regressions are confirmed in a second process."""
    allow_ci_update: bool = False
    force_update: bool = False
    """Record measurements that their own health checks call disturbed."""
    ci: bool = False
    """The ``CI`` environment variable is set (and not ``0`` or ``false``)."""
    record_to: Path | None = None
    """Internal: this process records rounds into this folder for the update that started it."""
    record_index: int = 0
    confirm_to: Path | None = None
    """Internal: this process confirms suspected regressions for the run that started it, by way of this folder."""

    @property
    def active(self) -> bool:
        """Whether anything is measured or compared in this process."""
        return self.enabled or self.update is not None or self.is_child

    @property
    def is_child(self) -> bool:
        """Whether this process measures for another one and gates nothing itself."""
        return self.record_to is not None or self.confirm_to is not None

    def zone(self, tolerance: float | None = None, profile: str | None = None) -> Tolerance:
        """The indifference zone after a test's own ``tolerance`` or ``profile``, the nearest word winning."""
        if tolerance is not None:
            return Tolerance(tolerance, 2 * tolerance)
        if profile is not None:
            return PROFILES[profile]
        if self.tolerance is not None:
            return Tolerance(self.tolerance, 2 * self.tolerance)
        return PROFILES[self.profile]


class BadValue(ValueError):
    """A value that a flag or ini setting does not accept; the message says what it does."""


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise BadValue(f"accepts {', '.join(choices)}")
        return text

    return parse


def number(low: float, high: float, unit: str = "") -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise BadValue(f"accepts a number from {low:g} to {high:g}{unit}")
        return value

    return parse


def whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text) or not low <= int(text) <= high:
            raise BadValue(f"accepts a whole number from {low} to {high}")
        return int(text)

    return parse


def architectures(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names or not all(re.fullmatch(r"sm_\d{2,3}[af]?", name) for name in names):
        raise BadValue("accepts architectures separated by commas, such as sm_80,sm_90")
    return names


def yes_no(text: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if text.lower() not in words:
        raise BadValue("accepts true or false")
    return words[text.lower()]


class Flag(NamedTuple):
    """One command-line flag; without ``parse`` it is a switch."""

    name: str
    field: str
    help: str
    parse: Callable[[str], Any] | None = None
    ini: bool = True
    metavar: str | None = None
    const: str | None = None
    """Value of the flag given without one."""
    hidden: bool = False

    @property
    def ini_name(self) -> str:
        return self.name.lstrip("-").replace("-", "_")


FLAGS: tuple[Flag, ...] = (
    Flag("--gpuperf", "enabled", "measure GPU workloads, compare them with their baselines, fail what regressed"),
    Flag("--update-baselines", "update", "record baselines of workloads that are new, changed (the default) or all",
         one_of("new", "changed", "all"), ini=False, metavar="MODE", const="changed"),
    Flag("--gpuperf-require-gpu", "require_gpu", "fail at once if there is no usable GPU"),
    Flag("--gpuperf-arch", "archs", "static targets (default: those with baselines, else the GPU's own)",
         architectures, metavar="sm_80,sm_90"),
    Flag("--gpuperf-baselines", "baselines", "folder of the baselines (default: baselines, beside the ini file)",
         str, metavar="DIR"),
    Flag("--gpuperf-missing", "missing", "a workload without a baseline: fail (default under CI) or warn",
         one_of("fail", "warn"), metavar="ACTION"),
    Flag("--gpuperf-inconclusive", "inconclusive", "an undecided workload: fail or warn (default)",
         one_of("fail", "warn"), metavar="ACTION"),
    Flag("--gpuperf-strict", "strict", "fail on a stale baseline too (FASTER, BETTER)"),
    Flag("--gpuperf-profile", "profile", "tolerance profile: tight 0.5/1 %%, standard 1/2 %%, loose 2/5 %%",
         one_of(*PROFILES), metavar="NAME"),
    Flag("--gpuperf-tolerance", "tolerance", "slower by no more than this fraction is accepted, such as 0.005",
         number(0.0005, 0.5), metavar="FRACTION"),
    Flag("--gpuperf-cache", "cache", "L2 state before each sample: cold (flushed, default) or warm",
         one_of("cold", "warm"), metavar="STATE"),
    Flag("--gpuperf-timer", "timer", "auto (default), cupti, graph or events",
         one_of("auto", "cupti", "graph", "events"), metavar="NAME"),
    Flag("--gpuperf-rounds", "rounds", "rounds that an update records per workload (default 10)",
         whole(2, 1000), metavar="N"),
    Flag("--gpuperf-processes", "processes", "fresh processes an update spreads them over (default 5)",
         whole(1, 100), metavar="N"),
    Flag("--gpuperf-budget", "budget_s", "wall-clock seconds for timing one workload (default 5)",
         number(0.05, 3600, " seconds"), metavar="SECONDS"),
    Flag("--gpuperf-changed", "changed_only", "do not time workloads whose machine code and launch are unchanged"),
    Flag("--gpuperf-all", "pair_all", "pair unchanged workloads with their baselines too, not only changed ones"),
    Flag("--gpuperf-confirmations", "confirmations",
         "tests per process whose suspected regressions a second process confirms (default 20)",
         whole(0, 100_000), metavar="N"),
    Flag("--gpuperf-allow-ci-update", "allow_ci_update", "let --update-baselines write under CI", ini=False),
    Flag("--gpuperf-force-update", "force_update", "record measurements that were disturbed, too", ini=False),
    Flag("--gpuperf-record-to", "record_to", "", str, ini=False, hidden=True),
    Flag("--gpuperf-record-index", "record_index", "", whole(0, 9999), ini=False, hidden=True),
    Flag("--gpuperf-confirm-to", "confirm_to", "", str, ini=False, hidden=True),
)  # fmt: skip


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
            parser.addini(flag.ini_name, flag.help.replace("%%", "%"), type="string", default=None)


def spell_out_update(arguments: list[str]) -> None:
    """Give a bare ``--update-baselines`` its value, so that it does not take the path after it for one."""
    arguments[:] = [f"{word}=changed" if word == "--update-baselines" else word for word in arguments]


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
            given = config.getini(flag.ini_name)
            origin = f"ini setting {flag.ini_name}"
        if given is None or given == "":
            continue
        values[flag.field] = _parse(flag, given, origin)
    values["baselines"] = _folder(config, values.get("baselines", "baselines"))
    for field in ("record_to", "confirm_to"):
        if field in values:  # the ini file may ask for a gate or an update, which is for the parent to do
            values.update({field: Path(values[field]), "enabled": False, "update": None, "changed_only": False})
    options = Options(**{"missing": "fail" if values["ci"] else "warn", **values})
    _refuse_ci_update(options)
    if options.pair_all and options.changed_only:
        raise pytest.UsageError(
            "--gpuperf-all and --gpuperf-changed exclude each other: the one pairs unchanged workloads, the other "
            "leaves them out"
        )
    return options


def _parse(flag: Flag, given: Any, origin: str) -> Any:
    if given is True:
        return True
    try:
        return (flag.parse or yes_no)(str(given))
    except BadValue as problem:
        raise pytest.UsageError(f"{origin}: {given!r} is not valid: it {problem}") from None


def _folder(config: pytest.Config, given: str) -> Path:
    path = Path(given).expanduser()
    return path if path.is_absolute() else config.rootpath / path


def _refuse_ci_update(options: Options) -> None:
    if options.update is not None and options.ci and not options.allow_ci_update:
        raise pytest.UsageError(
            "--update-baselines: refused because CI is set: a CI run must not move its own goalposts. "
            "Record baselines on a machine you trust and commit them, or add --gpuperf-allow-ci-update."
        )


def forwarded(options: Options) -> Sequence[str]:
    """The flags under which a child process measures exactly as this one does."""
    arguments = [f"--gpuperf-baselines={options.baselines}", f"--gpuperf-cache={options.cache}",
                 f"--gpuperf-timer={options.timer}", f"--gpuperf-budget={options.budget_s:g}",
                 f"--gpuperf-profile={options.profile}", f"--gpuperf-rounds={options.rounds}",
                 f"--gpuperf-processes={options.processes}"]  # fmt: skip
    if options.archs:
        arguments.append(f"--gpuperf-arch={','.join(options.archs)}")
    if options.tolerance is not None:
        arguments.append(f"--gpuperf-tolerance={options.tolerance:g}")
    return cast(Sequence[str], arguments)
