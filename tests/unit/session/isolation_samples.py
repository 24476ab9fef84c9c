"""Stand-ins around ``isolation``: a GPU, its watch, the end of a process and what replaces it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from run_samples import Run

from pytest_gpuperf.session.isolation import Isolation


class Ended(BaseException):
    """Stands for the end of this process."""


class Fresh:
    """Stands for what replaces pytest's process."""

    def __init__(self, config: Any) -> None:
        self.possible, self.config = True, config
        self.went_on: list[tuple[Any, ...]] = []

    def go_on(self, *why: Any) -> None:
        self.went_on.append(why)


class Device:
    """A GPU, and what it was asked."""

    def __init__(self) -> None:
        self.said = ""
        self.asked: list[str] = []
        self.launches = SimpleNamespace(last=["copy", "scale"], forget=lambda: self.asked.append("forget"))

    def begin_peak(self) -> None:
        self.asked.append("begin_peak")

    def fault(self) -> str:
        self.asked.append("fault")
        return self.said


class Watch:
    """A watch without a thread."""

    made: list[Watch]

    def __init__(self, opened: Callable[[], Any], limit_s: Callable[[], float], when_endless: Any) -> None:
        self.opened, self.limit_s, self.when_endless = opened, limit_s, when_endless
        self.calls: list[str] = []
        self.begin = lambda: self.calls.append("begin")
        self.end = lambda: self.calls.append("end")
        Watch.made.append(self)


class Isolated:
    """A run with its isolation, outside of pytest-xdist or as a worker of it."""

    def __init__(self, run: Run, **workerinput: Any) -> None:
        self.run, self.device = run, Device()
        self.registered: dict[str, Any] = {}
        run.config.pluginmanager.register = lambda plugin, name: self.registered.update({name: plugin})
        run.config.hook.pytest_report_to_serializable = self.serialised
        run.config._ensure_unconfigure = lambda: self.registered.update(unconfigured=True)
        if workerinput:
            run.config.workerinput = workerinput
        self.plugin = Isolation(run.config, run.options)
        self.item = self.item_of("test_copy")

    def serialised(self, config: Any, report: pytest.TestReport) -> dict[str, Any]:
        assert config is self.run.config
        return {"nodeid": report.nodeid, "when": report.when, "longrepr": report.longrepr, "place": Path("a")}

    @property
    def fresh(self) -> Fresh:
        return self.registered["gpuperf-fresh-process"]

    def item_of(self, name: str) -> Any:
        item = self.run.item(name)
        item.keywords = {name: True}
        item.session = SimpleNamespace(
            shouldfail=False, shouldstop=False,
            _setupstate=SimpleNamespace(teardown_exact=lambda none: self.device.asked.append("teardown")),
        )  # fmt: skip
        return item

    def ran(self, during: Callable[[], None] = lambda: None, nextitem: Any = "next") -> object:
        """One test, with what happens while it runs."""
        protocol = self.plugin.pytest_runtest_protocol(self.item, nextitem)
        next(protocol)
        during()
        with pytest.raises(StopIteration) as end:
            protocol.send("its result")
        return end.value.value

    def faults(self) -> None:
        self.run.worker.opened = self.device
        self.device.said = "an illegal address"
