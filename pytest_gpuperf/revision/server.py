"""The process of another revision runs a test on request of the process that gates; this module is a plugin there."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping

import msgspec
import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.device.lock import HELD_VARIABLE
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.process.serving import TestServer
from pytest_gpuperf.results import may_measure
from pytest_gpuperf.revision.foreign_files import foreign_files_of
from pytest_gpuperf.timing.process_reference import Link, Resume, RunTest, Started, TestEnded


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
        super().__init__(config, Link(task.reading, task.writing))
        foreign_files_of(config).note_reads()

    def serve(self, session: pytest.Session) -> None:
        items = {item.nodeid: item for item in session.items}
        _ = self.run.has_gpu  # opens the GPU while the other side collects
        self.link.send(Started(tests=frozenset(node for node, item in items.items() if may_measure(item))))
        while not self.run.gpu_lost:
            request = self.link.receive(RunTest | Resume)
            if isinstance(request, RunTest):
                known = request.node_id in items
                self.link.send(self._ran(items, request) if known else self.unknown(request.node_id))

    def _ran(self, items: Mapping[str, pytest.Item], request: RunTest) -> TestEnded:
        run = self.run
        run.link, run.describes = self.link if request.how == "pair" else None, request.how == "describe"
        os.environ |= {} if run.describes else {HELD_VARIABLE: run.device.facts.uuid}
        ended = self.run_test(items[request.node_id], items.get(request.following))
        os.environ.pop(HELD_VARIABLE, None)
        return msgspec.structs.replace(ended, foreign=foreign_files_of(self.config).lines())
