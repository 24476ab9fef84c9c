"""Declares the flags and ini settings of ``options``, and reads them.  What is wrong there is a usage error."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_gpuperf.options import FLAGS, GITHUB, HERE, SWITCH, USUAL_FOLDER, Flag, Options

if TYPE_CHECKING:
    from pytest_gpuperf.model.task import ChildTask

CI_SERVICES = ("TF_BUILD", "TEAMCITY_VERSION", "JENKINS_URL", "BUILD_NUMBER", "CODEBUILD_BUILD_ID")
"""Variables of services that do not set ``CI``: Azure Pipelines, TeamCity, Jenkins, AWS CodeBuild."""
REVISION_FOLDER = "gpuperf_revision_folder"
"""Under this name a worker of pytest-xdist gets the folder with the evidence of the revision."""
REPEATED = ("archs", "baselines", "tolerance", "min_delta_us", "cache")
"""Fields of ``Options`` whose flags the summary repeats where it says what to run."""
PLACES = {"--config-file": "inifilename", "--rootdir": "rootdir"}
"""Flags of pytest that say where the baselines are, by their names in its options; they are repeated too."""
ALONE = frozenset({"require_gpu", "archs", "baselines", "task"})
"""Fields of ``Options`` that mean something in a run that measures nothing."""


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
            parser.addini(flag.ini_name, flag.help.replace("%%", "%"), type=_ini_type(flag.ini), default=None)


def _ini_type(kind: str) -> Any:
    """As this version of pytest knows it; older ones take numbers as text."""
    if kind == "float or string":
        return float | str if pytest.version_tuple >= (9, 2) else "string"
    return "string" if kind == "float" and pytest.version_tuple < (8, 4) else kind


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
    values: dict[str, Any] = {"ci": bool(ci), "repeated": tuple(_repeated(config))}
    values |= {field: value for field, flag in FLAGS.items() if (value := _value(config, field, flag)) is not None}
    if "task" in values:  # the ini file may ask for a gate or an update, which is for the parent to do
        values |= {"task": _task(values["task"]), "enabled": False, "update": None, "time": "auto", "ncu": (),
                   "reports": ()}  # fmt: skip
    values.setdefault("baselines", USUAL_FOLDER)
    for field in {"baselines", "against_env"} & values.keys():
        values[field] = _path(config, field, values[field])
    if "against_env" in values:
        python = values["against_env"]
        values |= {"against": values.get("against") or HERE,
                   "against_env": python / "bin" / "python" if python.is_dir() else python}  # fmt: skip
    if folder := getattr(config, "workerinput", {}).get(REVISION_FOLDER):
        values["baselines"] = Path(folder)
    reports = values.get("reports", ())
    values["reports"] = tuple(one if one == GITHUB else str(_path(config, "reports", one)) for one in reports)
    values["undecided"] = values.get("open", "warn")
    values.setdefault("open", "fail" if ci else "warn")
    if values.get("advisory"):
        values |= {"open": "warn", "undecided": "warn", "strict": False}
    options = Options(**values)
    if problem := next(_conflicts(config, options, ci), None):
        raise pytest.UsageError(problem)
    return options


def _by_hand(config: pytest.Config, field: str) -> bool:
    return config.getoption(f"gpuperf_{field}") is not None


def _origin(config: pytest.Config, field: str) -> str:
    """The source of a value, for messages: a flag or a setting."""
    return FLAGS[field].name if _by_hand(config, field) else f"ini setting {FLAGS[field].ini_name}"


def _value(config: pytest.Config, field: str, flag: Flag) -> Any:
    """The value of the flag or the ini setting, None without both.  Raises ``pytest.UsageError``."""
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


def _conflicts(config: pytest.Config, options: Options, ci: str) -> Iterator[str]:
    """How the options contradict each other or their surroundings."""
    if options.update is not None and ci and not options.allow_ci_update:
        yield (
            f"--update-baselines: refused because {ci} is set: a CI run must not accept its own results. "
            "Record baselines on a machine you trust and commit them, or add --gpuperf-allow-ci-update."
        )
    if options.is_child:  # its folder may be another one, and the paths of its parent are not its own
        return
    if (python := options.against_env) is not None and (not os.access(python, os.X_OK) or python.is_dir()):
        yield f"--gpuperf-against-env: there is no program {python}: name a folder with bin/python, or a Python"
    own_folder = _by_hand(config, "baselines")
    if options.against and (options.update is not None or own_folder):
        other = "--update-baselines" if options.update is not None else "--gpuperf-baselines"
        yield f"{' '.join(options.against_flags)} and {other} cannot be combined: the other side replaces the baselines"
    if options.against and options.ncu:
        yield f"{' '.join(options.against_flags)} compares no counters: leave --gpuperf-ncu out"
    if options.active and options.update is None and own_folder and not options.baselines.is_dir():
        yield (
            f"--gpuperf-baselines: there is no folder {options.baselines} to compare with: name an existing one, "
            "or record baselines with --update-baselines"
        )
    count, finder = config.getoption("count", 1), config.getoption("flake_finder_enable", False)
    repeat = "--count" if isinstance(count, int) and count > 1 else "--flake-finder" if finder else ""
    if repeat and options.gates and not options.against:
        yield f"{repeat} gives each test new ids, which have no baselines: leave it out, or add --gpuperf-against=REF"
    given = {str(argument).partition("=")[0] for argument in config.invocation_params.args}  # ini settings may wait
    idle = [flag.name for field, flag in FLAGS.items() if flag.name in given and field not in ALONE]
    if idle and not options.active:
        yield (
            f"{', '.join(idle)}: nothing is measured without --gpuperf, --update-baselines or --gpuperf-ncu: add one "
            "of these"
        )
