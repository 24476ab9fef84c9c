"""Whether a guarded workload left alone what its verdict rests on: the records, and the code that measures."""

from __future__ import annotations

from pytest_gpuperf.context import stash
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.task import ConfirmTask
from pytest_gpuperf.workload.own_code import replaced


class TamperedRun(RuntimeError):
    """What a verdict rests on was changed while the run went on."""


def require_untouched(worker: Worker, key: Key) -> None:
    """Raise ``TamperedRun`` if a record was written since the run began, or functions that measure were replaced."""
    options = worker.options
    gates = options.gates or isinstance(options.task, ConfirmTask)  # who records writes, and is asked to
    written = worker.store.written_since(worker.config.stash[stash.BEGAN], key.module) if gates else None
    if written is not None and worker.revision is None:
        raise TamperedRun(
            f"{key.workload}: {written} was written while the run went on, so its verdict is on no record that was "
            "committed: restore the file (git checkout), find out who writes it, and run again"
        )
    name = replaced()
    if name:
        raise TamperedRun(
            f"{key.workload}: {name} was replaced while the run went on, so none of its times counts: take that out of "
            "the test, its conftest and the modules they import"
        )
