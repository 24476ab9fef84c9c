"""The start of a run that measures, compares or runs a part of the tests: what it needs is set up and registered.

One module, so that a plain run can do without all that comes with it.
"""

from __future__ import annotations

import os

import pytest

from pytest_gpuperf.context import child_process, stash
from pytest_gpuperf.context.foreign_code import note_device_code
from pytest_gpuperf.context.run_folder import open_run_folder
from pytest_gpuperf.context.sharding import Sharding
from pytest_gpuperf.context.tests_found import FindingTests
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.options import Options
from pytest_gpuperf.report.files import NotWritten, remove_reports
from pytest_gpuperf.session.interrupt import end_in_order
from pytest_gpuperf.session.isolation import Isolation
from pytest_gpuperf.session.other_toolchains import choose


def begin(config: pytest.Config, options: Options) -> None:
    """Set up what the options ask for, and register the plugins that have its hooks."""
    if options.is_child or child_process.PARENT_VARIABLE in os.environ:  # a whole run, if gpuperf bisect started it
        child_process.end_with_parent(config)
    if options.is_child:
        child_process.serve_if_opponent(config, options.task)
    if isinstance(options.task, RevisionTask):
        note_device_code(stash.worker_of(config).sources, options.task.others)
    if options.nvrtc is not None and options.active:
        choose(options.nvrtc)
    if options.gates or options.is_child:
        config.stash[stash.FINDING] = FindingTests()
        config.pluginmanager.register(config.stash[stash.FINDING], "gpuperf-finding-tests")
    if options.shard is not None:
        config.pluginmanager.register(Sharding(config, options.shard), "gpuperf-sharding")
        if not hasattr(config, "workerinput"):
            _forget_reports(options)
    if options.active:
        end_in_order(config)  # first, so that it lasts until the folder is gone
        open_run_folder(config)
        config.pluginmanager.register(Isolation(config, options), "gpuperf-isolation")
    if options.active and not hasattr(config, "workerinput"):
        _report(config, options)


def _forget_reports(options: Options) -> None:
    """Without the reports of an earlier run gpuperf merge finds this shard missing if it is killed."""
    try:
        remove_reports(options.reports)
    except NotWritten as problem:
        raise pytest.UsageError(f"--gpuperf-report: {problem}") from None


def _report(config: pytest.Config, options: Options) -> None:
    from pytest_gpuperf.session.reporting import Reporting  # noqa: PLC0415 NumPy comes with it, and no worker reports

    reporting = Reporting(config, options)
    config.pluginmanager.register(reporting, "gpuperf-reporting")
    config.pluginmanager.register(reporting.messages, "gpuperf-messages")
