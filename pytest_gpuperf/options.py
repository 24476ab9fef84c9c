"""Flags and ini settings: one table, read and checked before anything runs.  What is wrong there is a usage error.

A field of ``Options`` with a flag says in one place how the flag is called, how its value is read and what it means.
A flag ``--gpuperf-foo-bar`` has the ini setting ``gpuperf_foo_bar``; the flag wins.  A flag that concerns a single run
has none.  Keywords of the marker are in ``arguments``.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest

from pytest_gpuperf.model.architectures import SPELLINGS
from pytest_gpuperf.model.limits import MOST_BUDGET_S, PROFILES, TIMERS, Limits, TimerName, is_metric

if TYPE_CHECKING:
    from pytest_gpuperf.model.task import ChildTask
    from pytest_gpuperf.model.verdict import PairSlot

UpdateMode = Literal["new", "changed", "all"]
Action = Literal["fail", "warn"]

USUAL_FOLDER = "baselines"
"""Of the baselines, below pytest's root, unless another is given."""
BUDGET_S, SUSTAINED_BUDGET_S = 5.0, 320.0
"""For timing one workload, seconds; with sustained slots, room for 28 blocks of four slots and rounds."""
UPDATE_MODES = ("new", "changed", "all")
METRIC_SETS = ("default", "memory", "compute", "latency", "full")
REPORT_ENDINGS = (".json", ".md", ".html")
GITHUB = "github"
"""In the place of a report's file: the summary of the GitHub job that the run is in."""
CI_SERVICES = ("TF_BUILD", "TEAMCITY_VERSION", "JENKINS_URL", "BUILD_NUMBER", "CODEBUILD_BUILD_ID")
"""Variables of services that do not set ``CI``: Azure Pipelines, TeamCity, Jenkins, AWS CodeBuild."""
REVISION_FOLDER = "gpuperf_revision_folder"
"""Under this name a worker of pytest-xdist is told where the evidence of the revision lies."""
REPEATED = ("archs", "baselines", "profile", "tolerance", "cache", "nvrtc")
"""Fields of ``Options`` whose flags the summary repeats where it says what to run."""
PLACES = {"--config-file": "inifilename", "--rootdir": "rootdir"}
"""Flags of pytest that say where the baselines are, by their names in its options; they are repeated too."""
ALONE = frozenset({"require_gpu", "archs", "baselines", "task"})
"""Fields of ``Options`` that mean something in a run that measures nothing."""

# --- kinds of values -----------------------------------------------------------------------------


class Kind(NamedTuple):
    """A kind of value."""

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


def _list_of(is_word: Callable[[str], bool], accepts: str) -> Kind:
    def read(text: str) -> tuple[str, ...]:
        words = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
        if not words or not all(map(is_word, words)):
            raise ValueError(text)
        return words

    return Kind(accepts, read)


def _metrics(text: str) -> dict[str, float | None]:
    """Names, or names with a tolerance behind a space, separated by commas or line breaks."""
    entries = (entry.strip().partition(" ") for entry in re.split(r"[,\n]", text) if entry.strip())
    found = {name: float(tolerance) if tolerance.strip() else None for name, _, tolerance in entries}
    if not all(is_metric(name) and -1 <= (tolerance or 0) <= 100 for name, tolerance in found.items()):
        raise ValueError(text)
    return found


SWITCH = Kind("true or false", bool)
FOLDER, PROGRAM, REVISION = (Kind(words, str) for words in ("a folder", "a program", "a git revision"))
ARCHITECTURES = _list_of(SPELLINGS.__contains__, f"architectures separated by commas, of {', '.join(SPELLINGS)}")
METRIC_WORDS = _list_of(
    lambda word: word in METRIC_SETS or is_metric(word),
    f"{', '.join(METRIC_SETS)}, and names of metrics, separated by commas",
)
METRICS = Kind("metrics, each a name or a name and a tolerance such as 'dram__bytes.sum 0.02'", _metrics)
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
    ini: Literal["bool", "string", "float", ""] = ""
    """Type of the ini setting; empty: there is none."""
    bare: str | None = None
    """Value of the flag given without one."""

    @property
    def ini_name(self) -> str:
        return self.name.lstrip("-").replace("-", "_")


def _flag(default: Any, name: str, help: str, kind: Kind = SWITCH, **how: Any) -> Any:
    """A field of ``Options`` with its flag."""
    metadata = {"flag": Flag(name, help, kind, **how)}
    if default is dict:
        return dataclasses.field(default_factory=dict, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Options:
    """What this run was asked to do; the help of a flag says what its field is."""

    # fmt: off
    enabled: bool = _flag(
        False, "--gpuperf", "measure GPU workloads, compare them with their baselines, fail what regressed", ini="bool")
    update: UpdateMode | None = _flag(
        None, "--update-baselines", "record baselines: new (workloads that have none), changed (the default: these, "
        "what is proven to have changed, and tests given by node id) or all", _one_of(*UPDATE_MODES), metavar="MODE",
        bare="changed")
    disturbed: bool = _flag(
        False, "--gpuperf-disturbed", "record measurements, too, that other work on the GPU disturbed")
    allow_ci_update: bool = _flag(False, "--gpuperf-allow-ci-update", "let --update-baselines write under CI")
    baselines: Path = _flag(
        Path(USUAL_FOLDER), "--gpuperf-baselines", "folder of the baselines (default: baselines, beside the ini file)",
        FOLDER, metavar="DIR", ini="string")
    """Absolute."""
    against: str = _flag(
        "", "--gpuperf-against",
        "compare with a git revision instead of with baselines: a commit, a branch or merge-base:main", REVISION,
        metavar="REF")
    against_python: Path | None = _flag(
        None, "--gpuperf-against-python", "Python that runs the revision's tests (default: this one)", PROGRAM,
        metavar="PATH")
    """Absolute."""
    require_gpu: bool = _flag(False, "--gpuperf-require-gpu", "fail at once if there is no usable GPU", ini="bool")
    archs: tuple[str, ...] = _flag(
        (), "--gpuperf-arch",
        "static targets (default: those with baselines, else the GPU's own, else sm_80, sm_90 and sm_120)",
        ARCHITECTURES, metavar="sm_80,sm_90", ini="string")
    open: Action = _flag(
        "warn", "--gpuperf-open", "what is not proven: fail or warn (default: INCONCLUSIVE warns; NEW, NOT-COMPARABLE "
        "and NOT-MEASURED fail under CI and warn elsewhere)", _one_of("fail", "warn"), metavar="ACTION", ini="string")
    """Of what could not be compared or was not reached; under CI ``fail`` is the default."""
    strict: bool = _flag(False, "--gpuperf-strict", "fail on a stale baseline too (FASTER, BETTER)", ini="bool")
    advisory: bool = _flag(False, "--gpuperf-advisory", "report every verdict, and let none fail a test", ini="bool")
    profile: str = _flag(
        "tight", "--gpuperf-profile",
        "slowdown that is accepted / that is found: tight 0.5/1 %% (default), standard 1/2 %%, loose 2/5 %%",
        _one_of(*PROFILES), metavar="NAME", ini="string")
    tolerance: float | None = _flag(
        None, "--gpuperf-tolerance", "slowdown that is accepted, as a fraction such as 0.005; twice as much is found",
        _number(0.0005, 0.5), metavar="FRACTION", ini="float")
    cache: Literal["cold", "warm"] = _flag(
        "cold", "--gpuperf-cache", "L2 state before each sample: cold (flushed, default) or warm",
        _one_of("cold", "warm"), metavar="STATE", ini="string")
    timer: Literal["auto"] | TimerName = _flag(
        "auto", "--gpuperf-timer", f"auto (default: the best that works), {' or '.join(TIMERS)}",
        _one_of("auto", *TIMERS), metavar="NAME", ini="string")
    budget_s: float | None = _flag(
        None, "--gpuperf-budget",
        "wall-clock seconds for timing one workload (default 5, and 320 with sustained slots)",
        _number(0.05, MOST_BUDGET_S, " seconds"), metavar="SECONDS", ini="float")
    time: Literal["auto", "changed", "all"] = _flag(
        "auto", "--gpuperf-time", "workloads to time: changed (no unchanged ones), all (compare each with its "
        "baseline) or auto (default: compare those that may have changed, and time the others once)",
        _one_of("changed", "all", "auto"), metavar="WHICH", ini="string")
    ncu: tuple[str, ...] = _flag(
        (), "--gpuperf-ncu", "collect and gate hardware counters with Nsight Compute: default, memory, compute, "
        "latency, full, or names of metrics", METRIC_WORDS, metavar="SET", bare="default", ini="string")
    metrics: Mapping[str, float | None] = _flag(
        dict, "--gpuperf-metrics", "more metrics to collect; a number behind a name is the tolerance to "
        "gate it by, such as 'dram__bytes.sum 0.02'", METRICS, metavar="NAME,...", ini="string")
    explain: bool = _flag(
        False, "--gpuperf-explain", "say what holds each workload back, and why it changed", ini="bool")
    reports: tuple[str, ...] = _flag(
        (), "--gpuperf-report",
        "write a report to files that end in .json, .md or .html; github: the summary of the GitHub job", REPORTS,
        metavar="FILE,...", ini="string")
    """Absolute, or ``github``."""
    nvrtc: Path | None = _flag(
        None, "--gpuperf-nvrtc", "folder with another NVRTC (pip install --target DIR nvidia-cuda-nvrtc==VERSION)",
        FOLDER, metavar="DIR")
    """Absolute."""
    kernel_timeout_s: float = _flag(
        60.0, "--gpuperf-kernel-timeout",
        "seconds after which a kernel that has not ended is taken for endless (default 60)",
        _number(1, 86400, " seconds"), metavar="SECONDS", ini="float")
    task: ChildTask | None = _flag(None, "--gpuperf-task", argparse.SUPPRESS, FOLDER)
    """What this process does for the run that started it; None: a user did."""
    # fmt: on
    undecided: Action = "warn"
    """Of INCONCLUSIVE, and of what a machine without a GPU could not reach: ``open`` where it was given."""
    ci: bool = False
    """A CI service runs this."""
    named: tuple[str, ...] = ()
    """Node ids of tests that the command line names, with or without parameters; no files, folders or classes."""
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
    def new(self) -> Action:
        """Of a workload without a baseline: what a revision lacks is no open question."""
        return "warn" if self.against else self.open

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


FLAGS: Mapping[str, Flag] = {
    one.name: one.metadata["flag"] for one in dataclasses.fields(Options) if "flag" in one.metadata
}
"""By field of ``Options``."""


# --- declared and read ---------------------------------------------------------------------------


def add_options(parser: pytest.Parser) -> None:
    """Declare every flag and its ini setting."""
    group = parser.getgroup("gpuperf", "performance regression tests of GPU kernels")
    for field, flag in FLAGS.items():
        how: dict[str, Any] = {"action": "store_true"}
        if flag.kind is not SWITCH:
            how = {"action": "append" if field == "reports" else "store", "metavar": flag.metavar}
            how |= {} if flag.bare is None else {"nargs": "?", "const": flag.bare}
        group.addoption(flag.name, help=flag.help, dest=f"gpuperf_{field}", default=None, **how)
        if flag.ini:
            kind = "string" if flag.ini == "float" and pytest.version_tuple < (8, 4) else flag.ini
            parser.addini(flag.ini_name, flag.help.replace("%%", "%"), type=kind, default=None)


def spell_out_defaults(arguments: list[str]) -> None:
    """Give a bare ``--update-baselines`` its value, and its like, so that they do not take the path after them."""
    bare = {flag.name: flag.bare for flag in FLAGS.values() if flag.bare is not None}
    arguments[:] = [f"{word}={bare[word]}" if word in bare else word for word in arguments]


def ci_variable(environment: Mapping[str, str]) -> str:
    """The variable by which a CI service runs this: ``CI`` where it is set, else one of those; empty if none does."""
    if "CI" in environment:
        return "CI" if environment["CI"].lower() not in ("", "0", "false", "no") else ""
    return next((name for name in CI_SERVICES if environment.get(name)), "")


def read_options(config: pytest.Config) -> Options:
    """Flags over ini settings over defaults.  Raises ``pytest.UsageError``."""
    ci = ci_variable(os.environ)
    values: dict[str, Any] = {"ci": bool(ci), "named": tuple(_named(config)), "repeated": tuple(_repeated(config))}
    values |= {field: value for field, flag in FLAGS.items() if (value := _value(config, field, flag)) is not None}
    if _by_hand(config, "profile") and not _by_hand(config, "tolerance"):
        values.pop("tolerance", None)  # the flag for a profile takes the place of the ini setting for a tolerance
    if "task" in values:  # the ini file may ask for a gate or an update, which is for the parent to do
        values |= {"task": _task(values["task"]), "enabled": False, "update": None, "time": "auto", "ncu": (),
                   "reports": ()}  # fmt: skip
    values.setdefault("baselines", USUAL_FOLDER)
    for field in {"baselines", "against_python", "nvrtc"} & values.keys():
        values[field] = _path(config, field, values[field])
    if values.get("against") and (folder := getattr(config, "workerinput", {}).get(REVISION_FOLDER)):
        values["baselines"] = Path(folder)
    values["reports"] = tuple(_report(config, name) for name in values.get("reports", ()))
    values["undecided"] = values.get("open", "warn")
    values.setdefault("open", "fail" if ci else "warn")
    if values.get("advisory"):
        values |= {"open": "warn", "undecided": "warn", "strict": False}
    options = Options(**values)
    if problem := next(_conflicts(config, options, ci), None):
        raise pytest.UsageError(problem)
    return options


def _by_hand(config: pytest.Config, field: str) -> bool:
    """Whether its flag is given."""
    return config.getoption(f"gpuperf_{field}") is not None


def _origin(config: pytest.Config, field: str) -> str:
    """What a value was given by, for messages."""
    return FLAGS[field].name if _by_hand(config, field) else f"ini setting {FLAGS[field].ini_name}"


def _value(config: pytest.Config, field: str, flag: Flag) -> Any:
    """What the flag or the ini setting says, None if neither does.  Raises ``pytest.UsageError``."""
    given, origin = config.getoption(f"gpuperf_{field}"), _origin(config, field)
    if given is None:
        try:
            given = config.getini(flag.ini_name) if flag.ini else None
        except (TypeError, ValueError, pytest.UsageError) as problem:
            raise pytest.UsageError(f"{origin} is not valid: it accepts {flag.kind.accepts} ({problem})") from None
        if given is None or given == "":
            return None
    if flag.kind is SWITCH:
        return given
    text = ",".join(given) if isinstance(given, list) else str(given)
    if not text.strip():
        raise pytest.UsageError(f"{origin}: it was given without a value; leave it out, or give it one")
    try:
        return flag.kind.read(text)
    except ValueError:
        raise pytest.UsageError(f"{origin}: {text!r} is not valid: it accepts {flag.kind.accepts}") from None


def _named(config: pytest.Config) -> Iterator[str]:
    """Node ids among the arguments, their paths relative to pytest's root."""
    for argument in config.args:
        path, separator, test = str(argument).partition("::")
        if separator:
            yield f"{from_root(config, path)}::{test}"


def _repeated(config: pytest.Config) -> Iterator[str]:
    options = {**PLACES, **{FLAGS[field].name: f"gpuperf_{field}" for field in REPEATED}}
    for name, option in options.items():
        if (given := config.getoption(option)) is not None:
            yield f"{name}={given}"


def from_root(config: pytest.Config, path: str) -> str:
    """A path of the command line as node ids have it: seen from pytest's root, through links that lead there."""
    given = config.invocation_params.dir / path
    seen = Path(os.path.relpath(given, config.rootpath))
    if seen.parts[:1] == ("..",):
        seen = Path(os.path.relpath(given.resolve(), config.rootpath.resolve()))
    return seen.as_posix()


def _task(given: str) -> ChildTask:
    from pytest_gpuperf.model.task import read_task  # noqa: PLC0415 a plain run imports no msgspec

    try:
        return read_task(Path(given))
    except (OSError, ValueError) as problem:
        raise pytest.UsageError(f"--gpuperf-task={given}: {problem}") from None


def _path(config: pytest.Config, field: str, given: str) -> Path:
    """An ini setting is relative to pytest's root; a flag, like every path at a prompt, to the current folder."""
    start = config.invocation_params.dir if _by_hand(config, field) else config.rootpath
    return Path(os.path.normpath(start / Path(given).expanduser()))


def _report(config: pytest.Config, given: str) -> str:
    if given == GITHUB:
        return given
    name, path = _origin(config, "reports"), _path(config, "reports", given)
    if not path.parent.is_dir():
        raise pytest.UsageError(f"{name}: {given}: there is no folder {path.parent}: make it, or name another file")
    if path.is_dir():
        raise pytest.UsageError(f"{name}: {given} is a folder: name a file")
    return str(path)


def _conflicts(config: pytest.Config, options: Options, ci: str) -> Iterator[str]:
    """How the options contradict each other or their surroundings."""
    python, nvrtc = options.against_python, options.nvrtc
    if options.update is not None and ci and not options.allow_ci_update:
        yield (
            f"--update-baselines: refused because {ci} is set: a CI run must not move its own goalposts. "
            "Record baselines on a machine you trust and commit them, or add --gpuperf-allow-ci-update."
        )
    if python is not None and not options.against:
        yield "--gpuperf-against-python: there is no revision to run: add --gpuperf-against=REF"
    if python is not None and (not os.access(python, os.X_OK) or python.is_dir()):
        yield f"--gpuperf-against-python: there is no program {python}"
    if nvrtc is not None and not nvrtc.is_dir():
        yield f"--gpuperf-nvrtc: there is no folder {nvrtc}"
    if options.is_child:
        return
    own_folder = _by_hand(config, "baselines")
    if options.against and (options.update is not None or own_folder):
        other = "--update-baselines" if options.update is not None else "--gpuperf-baselines"
        yield f"--gpuperf-against and {other} exclude each other: a revision takes the place of the baselines"
    if options.against and options.ncu:
        yield "--gpuperf-against compares no counters: leave --gpuperf-ncu out"
    if options.active and options.update is None and own_folder and not options.baselines.is_dir():
        yield (
            f"--gpuperf-baselines: there is no folder {options.baselines}, so nothing could be compared: name one that "
            "is there, or record it with --update-baselines"
        )
    given = {str(argument).partition("=")[0] for argument in config.invocation_params.args}  # ini settings may wait
    idle = [flag.name for field, flag in FLAGS.items() if flag.name in given and field not in ALONE]
    if idle and not options.active:
        yield (
            f"{', '.join(idle)}: nothing is measured without --gpuperf, --update-baselines or --gpuperf-ncu: add the "
            "one you mean"
        )
