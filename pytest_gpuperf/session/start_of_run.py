"""The start of a run that measures or compares: what it needs is set up and registered.

One module, so that a plain run can do without all that comes with it.
"""

from __future__ import annotations

import signal

import pytest

from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.compile.toolkit import choose_nvrtc
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.tests_found import FindingTests
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.options import Options
from pytest_gpuperf.process.children import answer_signals, end_with_parent, interrupt
from pytest_gpuperf.process.gpu_fault import FaultPlugin


def begin(config: pytest.Config, options: Options) -> None:
    """Set up what the options ask for, and register the plugins that have its hooks."""
    end_with_parent()
    if isinstance(options.task, RevisionTask):
        from pytest_gpuperf.revision.server import RevisionServer  # noqa: PLC0415 SciPy comes with it

        config.pluginmanager.register(RevisionServer(config, options.task), "gpuperf-revision")
    if options.nvrtc is not None and options.active:
        try:
            choose_nvrtc(options.nvrtc)
        except ToolchainMissing as problem:
            raise pytest.UsageError(f"--gpuperf-nvrtc: {problem}") from None
    if options.gates or options.is_child:
        config.stash[stash.FINDING] = FindingTests()
        config.pluginmanager.register(config.stash[stash.FINDING], "gpuperf-finding-tests")
    if options.active:
        config.add_cleanup(answer_signals(interrupt, signal.SIGTERM))
        config.pluginmanager.register(FaultPlugin(config, options), "gpuperf-faults")
    if options.active and not hasattr(config, "workerinput"):
        _report(config, options)


def _report(config: pytest.Config, options: Options) -> None:
    from pytest_gpuperf.session.reporting import Reporting  # noqa: PLC0415 NumPy comes with it, and no worker reports

    reporting = Reporting(config, options)
    config.pluginmanager.register(reporting, "gpuperf-reporting")
    config.pluginmanager.register(reporting.messages, "gpuperf-messages")
