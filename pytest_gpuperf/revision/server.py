"""The process of another revision runs a test on request of the process that gates; this module is a plugin there."""

from __future__ import annotations

import os
from collections.abc import Generator

import msgspec
import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.device.lock import HELD_VARIABLE
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.process.serving import TestServer
from pytest_gpuperf.revision.foreign_files import foreign_files_of
from pytest_gpuperf.timing.process_reference import RunTest, TestEnded


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(args: list[str], parser: pytest.Parser) -> Generator[None]:
    """Leave out options of plugins and conftests that this side lacks, each with the word after it if it is loose."""
    yield
    known, unknown = parser.parse_known_and_unknown_args(args)
    loose, options = {*unknown, *known.file_or_dir}, {word for word in unknown if word.startswith("-")}
    pairs = zip(["", *args], list(args), strict=False)
    args[:] = [word for before, word in pairs if word not in options and not (before in options and word in loose)]


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if isinstance(task := config.stash[stash.OPTIONS].task, RevisionTask):
        config.pluginmanager.register(RevisionServer(config, task), "gpuperf-revision")


class RevisionServer(TestServer):
    """Runs the tests that are asked for, without times, with them, or stopping at each callable."""

    def __init__(self, config: pytest.Config, task: RevisionTask) -> None:
        super().__init__(config, task)
        foreign_files_of(config).note_reads()

    def answer(self, request: RunTest) -> TestEnded:
        run = self.run
        run.link, run.describes = self.link if request.how == "pair" else None, request.how == "describe"
        os.environ |= {} if run.describes else {HELD_VARIABLE: run.device.facts.uuid}
        ended = self.run_test(self.items[request.node_id], self.items.get(request.following))
        os.environ.pop(HELD_VARIABLE, None)
        return msgspec.structs.replace(ended, foreign=foreign_files_of(self.config).lines())
