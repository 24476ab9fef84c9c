"""The terminal as this plugin writes on it: whatever names and words come, no line steers it or commands a CI job."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pytest_gpuperf.formatting import harmless


@dataclasses.dataclass(frozen=True)
class Screen:
    """Pytest's terminal, for text of this plugin that others may have had a hand in."""

    reporter: pytest.TerminalReporter

    @property
    def config(self) -> pytest.Config:
        return self.reporter.config

    @property
    def verbose(self) -> bool:
        """Whether the run was asked to tell more, by ``-v``."""
        return self.config.get_verbosity() > 0

    @property
    def stats(self) -> dict[str, list[Any]]:
        """Pytest's own table of reports by outcome, not a copy."""
        return self.reporter.stats

    @property
    def width(self) -> int | None:
        """Characters of a line; None where nobody looks, as in a log."""
        return self.reporter._tw.fullwidth if self.reporter.isatty else None

    def write_line(self, line: str, **markup: bool) -> None:
        self.reporter.write_line(harmless(line), **markup)

    def write_sep(self, character: str, title: str) -> None:
        self.reporter.write_sep(character, harmless(title))
