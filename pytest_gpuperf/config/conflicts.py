"""What cannot be asked for together, or not here: usage errors before anything runs.

Single values are checked where they are read, in ``options``.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_gpuperf.config.flags import FLAGS

if TYPE_CHECKING:
    from pytest_gpuperf.config.options import Options

ALONE = frozenset({"require_gpu", "archs", "baselines", "ncu_json"})
"""Options that mean something in a plain run, or are refused there in words of their own."""


def refuse_conflicts(config: pytest.Config, options: Options, ci: str) -> None:
    """Raise ``pytest.UsageError`` if the options of this run contradict each other or their surroundings.

    ``ci`` names the variable by which ``options.ci`` was found; empty where it was not.
    """
    _refuse_ci_update(options, ci)
    _refuse_with_revision(config, options)
    if not options.active:
        _refuse_idle_flags(config)
    else:
        _refuse_bytes(config.rootpath, config.invocation_params.dir, options.baselines)
        _refuse_unreachable(options.baselines)
        if not options.is_child and options.update is None:
            _refuse_missing_folder(config, options)
    if options.pair_all and options.changed_only:
        raise pytest.UsageError(
            "--gpuperf-all and --gpuperf-changed exclude each other: the one pairs unchanged workloads, the other "
            "leaves them out"
        )


def _refuse_with_revision(config: pytest.Config, options: Options) -> None:
    if options.against_python is not None and not options.against:
        raise pytest.UsageError("--gpuperf-against-python: there is no revision to run: add --gpuperf-against=REF")
    if not options.against or options.is_child:
        return
    if options.update is not None:
        raise pytest.UsageError(
            "--gpuperf-against and --update-baselines exclude each other: the one compares with a revision, the other "
            "writes what this one has"
        )
    if config.getoption("gpuperf_baselines") is not None:
        raise pytest.UsageError(
            "--gpuperf-against and --gpuperf-baselines exclude each other: leave one of the two opponents out"
        )
    if options.ncu:
        raise pytest.UsageError("--gpuperf-against compares no counters: leave --gpuperf-ncu out")


def _refuse_ci_update(options: Options, ci: str) -> None:
    if options.update is not None and options.ci and not options.allow_ci_update:
        raise pytest.UsageError(
            f"--update-baselines: refused because {ci} is set: a CI run must not move its own goalposts. "
            "Record baselines on a machine you trust and commit them, or add --gpuperf-allow-ci-update."
        )


def words_of(arguments: Iterable[object]) -> list[str]:
    """``arguments`` of a command and those in ``PYTEST_ADDOPTS``: what no file of the project gives."""
    return [*map(str, arguments), *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))]


def misread_by_locale(name: str) -> str:
    """Why a name that is UTF-8 is none as this Python reads it, and what to do; empty where the locale is no cause."""
    try:
        os.fsencode(name).decode()
    except UnicodeDecodeError:
        return ""
    return (
        f"in this locale Python reads names of files as {sys.getfilesystemencoding()}, and that of this folder is "
        "UTF-8: set PYTHONUTF8=1 or LC_ALL=C.UTF-8"
    )


def _refuse_bytes(*folders: Path) -> None:
    """Baselines, reports and processes that name each other's files are text."""
    for folder in folders:
        try:
            str(folder).encode()
        except UnicodeEncodeError:
            why = misread_by_locale(str(folder)) or (
                "the name of this folder is not UTF-8, as the JSON of reports and processes has to be: rename it, or "
                "run in another checkout"
            )
            raise pytest.UsageError(f"{str(folder)!a}: {why}") from None


def _refuse_unreachable(folder: Path) -> None:
    """A name that is too long, or a folder above that may not be entered."""
    try:
        folder.lstat()
    except FileNotFoundError:
        return
    except OSError as problem:
        raise pytest.UsageError(
            f"--gpuperf-baselines: {folder} cannot be reached ({problem.strerror}): name another folder, or repair that"
        ) from problem


def _refuse_missing_folder(config: pytest.Config, options: Options) -> None:
    """A folder that was named by hand is meant to be there; the usual one is not, before the first recording."""
    if config.getoption("gpuperf_baselines") is not None and not options.baselines.is_dir():
        raise pytest.UsageError(
            f"--gpuperf-baselines: there is no folder {options.baselines}, so nothing could be compared: name one that "
            "is there, or record it with --update-baselines"
        )


def _refuse_idle_flags(config: pytest.Config) -> None:
    """A gate that was asked to be strict and not to gate would always be green; ini settings wait for their run."""
    given = {str(argument).partition("=")[0] for argument in config.invocation_params.args}
    idle = [flag.name for flag in FLAGS if flag.name in given and flag.field not in ALONE and not flag.hidden]
    if idle:
        raise pytest.UsageError(
            f"{', '.join(idle)}: nothing is measured without --gpuperf, --update-baselines or --gpuperf-ncu: add the "
            "one you mean"
        )
