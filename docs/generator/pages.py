"""The pages of docs/reference and what makes each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import api_page
import command_page
import metric_page
import option_page
import schema_page
import verdict_page

PAGES: Mapping[str, Callable[[], str]] = {
    "api.md": api_page.page,
    "options.md": option_page.page,
    "verdicts.md": verdict_page.page,
    "commands.md": command_page.page,
    "metrics.md": metric_page.page,
    "report.schema.json": schema_page.page,
}
