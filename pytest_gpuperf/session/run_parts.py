"""What a shard leaves in its report, so that all shards together are judged as one run is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest

from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.book import Book
from pytest_gpuperf.context.repository import changes_in
from pytest_gpuperf.context.shard_plan import hash_of
from pytest_gpuperf.context.tests_found import TestsFound
from pytest_gpuperf.model.tolerance import PROFILES
from pytest_gpuperf.options import Options
from pytest_gpuperf.report.run_part import Missed, OptionValue, RunPart
from pytest_gpuperf.session.missed_records import MISSED, archs_of, came_to_end, is_full, models_of
from pytest_gpuperf.session.run_scope import scope_of

LEFT_TO_MERGE = "{} (of this shard; gpuperf merge says it of all together)"
BEAR_UPON_VERDICTS = (
    "archs", "require_gpu", "against", "open", "undecided", "strict", "advisory",
    "profile", "tolerance", "cache", "timer", "budget_s", "time",
    "ncu", "metrics", "ci",
)  # fmt: skip
"""Fields of ``Options`` that all shards of a run have alike."""
ENDED = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
"""Exit statuses of a run that did not come to its end."""


def has_tests(config: pytest.Config) -> bool:
    """Whether the run that this shard is a part of has any test to run."""
    found = config.stash[stash.FINDING].found
    return found is not None and bool(found.plan)


def part_of(session: pytest.Session, book: Book) -> RunPart:
    """Of a run that is a shard."""
    config = session.config
    options, worker = config.stash[stash.OPTIONS], stash.worker_of(config)
    found = config.stash[stash.FINDING].found or TestsFound()
    return RunPart(
        plan=_digest(config, found), complete=session.exitstatus not in ENDED and came_to_end(config),
        tests_run=book.tests_run, options=asked_for(options, config), archs=tuple(sorted(archs_of(worker))),
        models=models_of(book, found), without_gpu=any(one.status == "static only" for one in book.evidence),
        full=is_full(config), root=str(config.rootpath),
        revision="" if worker.revision is None else worker.revision.name,
        changes=changes_in(config.rootpath, map(Path, options.reports)),  # each shard has its own, even if committed
        failures=dict(book.failures), missed=config.stash.get(MISSED, Missed()),
    )  # fmt: skip


def asked_for(options: Options, config: pytest.Config) -> dict[str, OptionValue]:
    """Options by field; the folder of the baselines as seen from pytest's root."""
    asked = {field: _plain(getattr(options, field)) for field in BEAR_UPON_VERDICTS}
    if not options.against:
        asked["baselines"] = os.path.relpath(options.baselines, config.rootpath)
    return asked


class StrangeOption(Exception):
    """A report has an option that this version of the plugin lacks, or a value that it does not take for one."""


def options_of(part: RunPart) -> Options:
    """What the shards of a run were asked for, as one run would have been.  Raises ``StrangeOption``."""
    hints = get_type_hints(Options, localns={"ChildTask": object, "PairSlot": str})
    kinds = {**{field: hints[field] for field in BEAR_UPON_VERDICTS}, "baselines": str}
    given = {field: _taken(field, value, kinds) for field, value in part.options.items()}
    folder = given.pop("baselines", "")
    return Options(enabled=True, baselines=Path(part.root) / folder, **given)


def _taken(field: str, value: OptionValue, kinds: Mapping[str, Any]) -> Any:
    if field not in kinds:
        raise StrangeOption(f"there is no option {quoted(field)}")
    with contextlib.suppress(msgspec.ValidationError):
        taken = msgspec.convert(value, kinds[field])
        if field != "profile" or taken in PROFILES:
            return taken
    raise StrangeOption(f"the option {field} does not take {quoted(str(value))}")


def _plain(value: Any) -> OptionValue:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _digest(config: pytest.Config, found: TestsFound) -> str:
    """Of all that has to be equal where shards collect: tests, files, what could not be collected, and the places."""
    scope = scope_of(config)
    groups = (found.tests, found.modules, found.failed, found.skipped.keys(), scope.places)
    words = [found.plan, str(scope.full), str(scope.whole)]
    for group in groups:
        words += [f"{len(group)}", *sorted(group)]
    return hash_of(words)
