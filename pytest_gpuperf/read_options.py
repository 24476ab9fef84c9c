"""Declares the flags and ini settings of ``options``, and reads them.  What is wrong there is a usage error."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_gpuperf.options import FLAGS, GITHUB, USUAL_FOLDER, Flag, Options

if TYPE_CHECKING:
    from pytest_gpuperf.model.task import ChildTask

CI_SERVICES = ("TF_BUILD", "TEAMCITY_VERSION", "JENKINS_URL", "BUILD_NUMBER", "CODEBUILD_BUILD_ID")
"""Variables of services that do not set ``CI``: Azure Pipelines, TeamCity, Jenkins, AWS CodeBuild."""
REVISION_FOLDER = "gpuperf_revision_folder"
"""Under this name a worker of pytest-xdist is told where the evidence of the revision lies."""
REPEATED = ("archs", "baselines", "profile", "tolerance", "cache")
"""Fields of ``Options`` whose flags the summary repeats where it says what to run."""
PLACES = {"--config-file": "inifilename", "--rootdir": "rootdir"}
"""Flags of pytest that say where the baselines are, by their names in its options; they are repeated too."""
ALONE = frozenset({"require_gpu", "archs", "baselines", "task"})
"""Fields of ``Options`` that mean something in a run that measures nothing."""
FLOATS = pytest.version_tuple >= (8, 4)
"""Whether this pytest has ini settings that are numbers."""


def add_options(parser: pytest.Parser) -> None:
    """Declare every flag and its ini setting."""
    group = parser.getgroup("gpuperf", "performance regression tests of GPU kernels")
    for field, flag in FLAGS.items():
        how: dict[str, Any] = {"dest": f"gpuperf_{field}", "default": None, "action": "store_true"}
        if flag.kind is not None:
            how |= {"action": "append" if field == "reports" else "store", "metavar": flag.metavar}
            how |= {} if flag.bare is None else {"nargs": "?", "const": flag.bare}
        group.addoption(flag.name, help=argparse.SUPPRESS if flag.hidden else flag.help, **how)
        if flag.ini:
            kind = "string" if flag.ini == "float" and not FLOATS else flag.ini
            parser.addini(flag.ini_name, flag.help.replace("%%", "%"), type=kind, default=None)


def spell_out_defaults(arguments: list[str]) -> None:
    """Give a bare ``--update-baselines`` its value, and its like, so that they do not take the path after them."""
    bare = {flag.name: flag.bare for flag in FLAGS.values() if flag.bare is not None}
    arguments[:] = [f"{word}={bare[word]}" if word in bare else word for word in arguments]


def keep_modules_together(config: pytest.Config) -> None:
    """Let pytest-xdist hand out runs of neighbouring tests where the user does not say how: ``--dist worksteal``.

    Its own default deals tests out one by one, so every worker compiles what the tests of a module share: on two GPUs
    the example suite was 1.4 times as fast as on one.  Has to come before pytest-xdist's ``pytest_cmdline_main``.
    """
    if config.getoption("numprocesses", None) and config.getoption("dist") == "no" and read_options(config).active:
        config.option.dist = "worksteal"


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
    values["baselines"] = _path(config, "baselines", values.get("baselines", USUAL_FOLDER))
    if values.get("against"):
        folder: str | None = getattr(config, "workerinput", {}).get(REVISION_FOLDER)
        values["baselines"] = values["baselines"] if folder is None else Path(folder)
    if "against_python" in values:
        values["against_python"] = _path(config, "against_python", values["against_python"])
    values["reports"] = tuple(_report(config, name) for name in values.get("reports", ()))
    values["undecided"] = values.get("open", "warn")
    values.setdefault("open", "fail" if ci else "warn")
    if values.get("advisory"):
        values |= {"open": "warn", "undecided": "warn", "strict": False}
    options = Options(**values)
    for problem in _conflicts(config, options, ci):
        raise pytest.UsageError(problem)
    return options


def _by_hand(config: pytest.Config, field: str) -> bool:
    """Whether its flag is given."""
    return config.getoption(f"gpuperf_{field}") is not None


def _value(config: pytest.Config, field: str, flag: Flag) -> Any:
    """What the flag or the ini setting says, None if neither does.  Raises ``pytest.UsageError``."""
    given, origin = config.getoption(f"gpuperf_{field}"), flag.name
    if isinstance(given, list):
        given = ",".join(given)
    if given is None and flag.ini:
        origin = f"ini setting {flag.ini_name}"
        try:
            given = config.getini(flag.ini_name)
        except (TypeError, ValueError, pytest.UsageError) as problem:
            raise pytest.UsageError(f"{origin} is not valid: it accepts {flag.accepts} ({problem})") from None
        given = None if given == "" else given
    if given is None or flag.kind is None:
        return given
    if not str(given).strip():
        raise pytest.UsageError(f"{origin}: it was given without a value; leave it out, or give it one")
    with contextlib.suppress(ValueError):
        value = flag.kind.read(str(given))
        if flag.kind.is_valid(value):
            return value
    raise pytest.UsageError(f"{origin}: {given!r} is not valid: it accepts {flag.kind.accepts}")


def _named(config: pytest.Config) -> Iterator[str]:
    """Node ids among the arguments, their paths relative to pytest's root."""
    for argument in config.args:
        path, separator, test = str(argument).partition("::")
        if separator:
            yield f"{from_root(config, path)}::{test}"


def _repeated(config: pytest.Config) -> Iterator[str]:
    for name, option in PLACES.items():
        if (given := config.getoption(option)) is not None:
            yield f"{name}={given}"
    for field in REPEATED:
        if (given := config.getoption(f"gpuperf_{field}")) is not None:
            yield f"{FLAGS[field].name}={given}"


def from_root(config: pytest.Config, path: str) -> str:
    """A path of the command line as node ids have it: seen from pytest's root, through links that lead there."""
    given = place_of(config, path)
    seen = Path(os.path.relpath(given, config.rootpath))
    if seen.parts[:1] == ("..",):
        seen = Path(os.path.relpath(given.resolve(), config.rootpath.resolve()))
    return seen.as_posix()


def place_of(config: pytest.Config, path: str) -> Path:
    """Where a path of the command line lies, or with ``--pyargs`` the module of this name; links are kept."""
    given = config.invocation_params.dir / path
    if given.exists() or not config.getoption("pyargs"):
        return given
    try:
        spec = importlib.util.find_spec(path)
    except (ImportError, ValueError):
        return given
    found = None if spec is None else next(iter(spec.submodule_search_locations or ()), spec.origin)
    return Path(found) if found else given


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
    name = "--gpuperf-report" if _by_hand(config, "reports") else "ini setting gpuperf_report"
    path = _path(config, "reports", given)
    if not path.parent.is_dir():
        raise pytest.UsageError(f"{name}: {given}: there is no folder {path.parent}: make it, or name another file")
    if path.is_dir():
        raise pytest.UsageError(f"{name}: {given} is a folder: name a file")
    return str(path)


def _conflicts(config: pytest.Config, options: Options, ci: str) -> Iterator[str]:
    """How the options contradict each other or their surroundings."""
    python = options.against_python
    if options.update is not None and ci and not options.allow_ci_update:
        yield (
            f"--update-baselines: refused because {ci} is set: a CI run must not move its own goalposts. "
            "Record baselines on a machine you trust and commit them, or add --gpuperf-allow-ci-update."
        )
    if python is not None and not options.against:
        yield "--gpuperf-against-python: there is no revision to run: add --gpuperf-against=REF"
    if python is not None and (not os.access(python, os.X_OK) or python.is_dir()):
        yield f"--gpuperf-against-python: there is no program {python}"
    if options.is_child:
        return
    if options.against and options.update is not None:
        yield (
            "--gpuperf-against and --update-baselines exclude each other: the one compares with a revision, the other "
            "writes what this one has"
        )
    if options.against and _by_hand(config, "baselines"):
        yield "--gpuperf-against and --gpuperf-baselines exclude each other: leave one of the two references out"
    if options.against and options.ncu:
        yield "--gpuperf-against compares no counters: leave --gpuperf-ncu out"
    compares = options.active and options.update is None
    if compares and _by_hand(config, "baselines") and not options.baselines.is_dir():  # the usual one may not be there
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
