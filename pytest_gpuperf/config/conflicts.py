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

OF_THE_JOB = frozenset({"trust_cubins", "allow_ci_update", "against", "shard", "task"})
"""Options by which a run believes more or gates less than its command says."""
LISTINGS = {
    "collectonly": ("--collect-only", "--collectonly", "--co"), "markers": ("--markers",),
    "showfixtures": ("--fixtures", "--funcargs"), "show_fixtures_per_test": ("--fixtures-per-test",),
}  # fmt: skip
"""Flags of pytest that list what there is and run no test, by their names in its options."""
ALONE = frozenset({"require_gpu", "archs", "baselines", "ncu_json"})
"""Options that mean something in a plain run, or are refused there in words of their own."""


def refuse_conflicts(config: pytest.Config, options: Options, ci: str) -> None:
    """Raise ``pytest.UsageError`` if the options of this run contradict each other or their surroundings.

    ``ci`` names the variable by which ``options.ci`` was found; empty where it was not.
    """
    _refuse_missing_parts(config)
    _refuse_by_file(config, options, ci)
    _refuse_ci_update(options, ci)
    _refuse_with_revision(config, options)
    if options.shard is not None:
        _refuse_with_shard(config, options)
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


def _refuse_missing_parts(config: pytest.Config) -> None:
    """A change under test may edit the ini file: a gate without its report says nothing of what was not judged."""
    blocked = [name for name, part in config.pluginmanager.list_name_plugin() if part is None]
    given = [f"-p no:{name}" for name in blocked if name.startswith("gpuperf-")]
    if given:
        raise pytest.UsageError(
            f"{', '.join(given)}: a part of pytest-gpuperf cannot be left out: take it out of the command line, "
            "PYTEST_ADDOPTS or addopts of the ini file. -p no:gpuperf leaves out the whole plugin"
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


LOCAL_CHOICES = {"lf": "--lf", "stepwise": "--sw", "stepwise_skip": "--sw-skip"}
"""Flags of pytest that choose tests by what this machine alone remembers, by their names in its options."""


def _refuse_with_shard(config: pytest.Config, options: Options) -> None:
    """All shards have to see the same tests and the same records, or some test would be in none of them."""
    if options.update is not None:
        raise pytest.UsageError(
            "--gpuperf-shard and --update-baselines exclude each other: each shard would leave a part of the baselines "
            "on a machine of its own: record them in one run, under pytest-xdist where there are several GPUs"
        )
    if not options.enabled:
        raise pytest.UsageError("--gpuperf-shard: only a gated run has shards: add --gpuperf")
    given = [flag for name, flag in LOCAL_CHOICES.items() if getattr(config.option, name, False)]
    if given:
        raise pytest.UsageError(
            f"--gpuperf-shard and {given[0]} exclude each other: what failed before is known to one machine only, and "
            "all shards have to choose among the same tests"
        )


def _refuse_ci_update(options: Options, ci: str) -> None:
    if options.update is not None and options.ci and not options.allow_ci_update:
        raise pytest.UsageError(
            f"--update-baselines: refused because {ci} is set: a CI run must not move its own goalposts. "
            "Record baselines on a machine you trust and commit them, or add --gpuperf-allow-ci-update."
        )


def words_of(arguments: Iterable[object]) -> list[str]:
    """``arguments`` of a command and those in ``PYTEST_ADDOPTS``: what no file of the project gives."""
    return [*map(str, arguments), *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))]


def _refuse_by_file(config: pytest.Config, options: Options, ci: str) -> None:
    """A change under test may edit the ini file: it does not say itself that it is to be trusted, or not gated."""
    if not options.ci or hasattr(config, "workerinput"):
        return
    by_hand = {word.partition("=")[0] for word in words_of(config.invocation_params.args)}
    if options.is_child and "--gpuperf-task" in by_hand:  # whose flags the run was asked about
        return
    given = [
        flag.name
        for flag in FLAGS
        if flag.field in OF_THE_JOB and config.getoption(f"gpuperf_{flag.field}") is not None
        if flag.name not in by_hand
    ]
    if options.gates:
        given += [
            flags[0]
            for name, flags in LISTINGS.items()
            if getattr(config.option, name, False) and by_hand.isdisjoint(flags)
        ]
    if given:
        raise pytest.UsageError(
            f"{', '.join(given)}: refused because {ci} is set and addopts of the ini file gives it, which a pull "
            "request can edit. Give it in the command of the job"
        )


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
