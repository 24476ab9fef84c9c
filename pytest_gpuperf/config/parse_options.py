"""Command-line flags and ini settings, turned into ``Options``.

A flag ``--gpuperf-foo-bar`` has the ini counterpart ``gpuperf_foo_bar``; the flag wins.  Flags that write baselines
have none: a run that rewrites the reference is asked for each time.  Marker keywords are in ``context.marker``.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_gpuperf.config.conflicts import refuse_conflicts
from pytest_gpuperf.config.flags import FLAGS, GITHUB, USUAL_FOLDER, BadValue, Flag
from pytest_gpuperf.config.options import Options

if TYPE_CHECKING:
    from pytest_gpuperf.model.task import ChildTask

CI_SERVICES = ("TF_BUILD", "TEAMCITY_VERSION", "JENKINS_URL", "BUILD_NUMBER", "CODEBUILD_BUILD_ID")
"""Variables of services that do not set ``CI``: Azure Pipelines, TeamCity, Jenkins, AWS CodeBuild."""

REPEATED = ("archs", "baselines", "profile", "tolerance", "cache", "nvrtc")
"""Fields of ``Options`` whose flags the summary repeats where it says what to run."""
PLACES = {"--config-file": "inifilename", "--rootdir": "rootdir"}
"""Flags of pytest that say where the baselines are, by their names in its options; they are repeated too."""


def add_options(parser: pytest.Parser) -> None:
    """Declare every flag and its ini setting."""
    group = parser.getgroup("gpuperf", "performance regression tests of GPU kernels")
    for flag in FLAGS:
        kept: dict[str, Any] = {"dest": f"gpuperf_{flag.field}", "default": None}
        kept["help"] = argparse.SUPPRESS if flag.hidden else flag.help
        if flag.parse is None:
            group.addoption(flag.name, action="store_true", **kept)
        else:
            bare = {} if flag.const is None else {"nargs": "?", "const": flag.const}
            action = "append" if flag.adds_up else "store"
            group.addoption(flag.name, action=action, metavar=flag.metavar, **bare, **kept)
        if flag.ini:
            kind: Literal["bool", "string"] = "bool" if flag.parse is None else "string"
            parser.addini(flag.ini_name, flag.help.replace("%%", "%"), type=kind, default=None)


def spell_out_defaults(arguments: list[str]) -> None:
    """Give a bare ``--update-baselines`` its value, and its like, so that they do not take the path after them."""
    defaults = {flag.name: flag.const for flag in FLAGS if flag.const is not None}
    arguments[:] = [f"{word}={defaults[word]}" if word in defaults else word for word in arguments]


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
    values: dict[str, Any] = {"ci": bool(ci)}
    for flag in FLAGS:
        given = config.getoption(f"gpuperf_{flag.field}")
        if flag.adds_up and given is not None:
            given = ",".join(given)
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
    by_hand = config.getoption("gpuperf_baselines") is not None
    values["named"] = tuple(_named(config))
    values["repeated"] = (
        *(f"{name}={given}" for name, option in PLACES.items() if (given := config.getoption(option)) is not None),
        *(
            f"{flag.name}={given}"
            for flag in FLAGS
            if flag.field in REPEATED and (given := config.getoption(f"gpuperf_{flag.field}")) is not None
        ),
    )
    values["baselines"] = _path(config, values.get("baselines", USUAL_FOLDER), by_hand=by_hand)
    if "task" in values:  # the ini file may ask for a gate or an update, which is for the parent to do
        values.update({"task": _task(values["task"]), "enabled": False, "update": None, "changed_only": False,
                       "ncu": (), "ncu_json": None, "reports": ()})  # fmt: skip
    if values.get("against"):
        values.update(_against(config, values))
    if values.get("ncu_json"):
        values["ncu_json"] = _file(config, values["ncu_json"], bool(values.get("ncu")))
    if "nvrtc" in values:
        values["nvrtc"] = _folder(config, "nvrtc", values["nvrtc"])
    values["reports"] = tuple(_report(config, name) for name in values.get("reports", ()))
    values["without_gpu"] = values.get("missing", "warn")  # under CI too: times are for the runner with a GPU
    is_open = values.setdefault("open", "fail" if values["ci"] else "warn")
    options = Options(**{"missing": is_open, **values})
    refuse_conflicts(config, options, ci)
    return options


def _named(config: pytest.Config) -> Iterator[str]:
    """Node ids among the arguments, their paths relative to pytest's root."""
    for argument in config.args:
        path, separator, test = str(argument).partition("::")
        if separator:
            yield f"{from_root(config, path)}::{test}"


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
    if not given.exists() and config.getoption("pyargs"):
        given = _imported_from(path) or given
    return given


def _imported_from(module: str) -> Path | None:
    """File of a module, folder of a package; None if there is none of that name."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    folders = spec.submodule_search_locations
    place = next(iter(folders), None) if folders is not None else spec.origin
    return Path(place) if place else None


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


REVISION_FOLDER = "gpuperf_revision_folder"
"""Under this name a worker of pytest-xdist is told where the evidence of the revision lies."""


def _against(config: pytest.Config, values: dict[str, Any]) -> dict[str, Any]:
    """What else follows where a revision takes the place of the baselines: what is new there is no open question."""
    found: dict[str, Any] = {"missing": values.get("missing", "warn")}
    folder: str | None = getattr(config, "workerinput", {}).get(REVISION_FOLDER)
    if folder is not None:
        found["baselines"] = Path(folder)
    if given := values.get("against_python"):
        python = found["against_python"] = _path(config, given, by_hand=True)
        if not os.access(python, os.X_OK) or python.is_dir():
            raise pytest.UsageError(f"--gpuperf-against-python={given}: there is no program {python}")
    return found


def _task(given: str) -> ChildTask:
    from pytest_gpuperf.model.task import read_task  # noqa: PLC0415 a plain run imports no msgspec

    try:
        return read_task(Path(given))
    except (OSError, ValueError) as problem:
        raise pytest.UsageError(f"--gpuperf-task={given}: {problem}") from None


def _path(config: pytest.Config, given: str, *, by_hand: bool) -> Path:
    """An ini setting is relative to pytest's root; a flag, like every path at a prompt, to the current folder."""
    start = config.invocation_params.dir if by_hand else config.rootpath
    return Path(os.path.normpath(start / Path(given).expanduser()))


def _file(config: pytest.Config, given: str, ncu: bool) -> Path:
    path: Path = config.invocation_params.dir / given
    if not ncu:
        raise pytest.UsageError(f"--gpuperf-ncu-json={given}: there is nothing to write without --gpuperf-ncu")
    return _writable(path, f"--gpuperf-ncu-json={given}")


def _writable(path: Path, said: str) -> Path:
    """The file, if there can be one.  Raises ``pytest.UsageError``."""
    try:
        if not path.parent.is_dir():
            raise pytest.UsageError(f"{said}: there is no folder {path.parent}: make it, or name another file")
        if path.is_dir():
            raise pytest.UsageError(f"{said} is a folder: name a file")
    except OSError as problem:
        raise pytest.UsageError(f"{said}: {problem.strerror}: name another file") from None
    return path


def _folder(config: pytest.Config, field: str, given: str) -> Path:
    path = _path(config, given, by_hand=config.getoption(f"gpuperf_{field}") is not None)
    if not path.is_dir():
        raise pytest.UsageError(f"--gpuperf-{field}: there is no folder {path}")
    return path


def _report(config: pytest.Config, given: str) -> str:
    if given == GITHUB:
        return given
    by_hand = config.getoption("gpuperf_reports") is not None
    name = "--gpuperf-report" if by_hand else "ini setting gpuperf_report"
    path = _writable(_path(config, given, by_hand=by_hand), f"{name}: {given}")
    return str(path)
