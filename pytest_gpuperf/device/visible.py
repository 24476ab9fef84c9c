"""Which GPU of the caller's own list a process takes.  Pure, but for ``bind_worker``.

``CUDA_VISIBLE_DEVICES`` belongs to the caller: a pytest-xdist worker narrows it to one of its entries and
never replaces it by an index of its own.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence

VARIABLE = "CUDA_VISIBLE_DEVICES"


def listed(value: str | None) -> list[str] | None:
    """The entries of the variable, in order; None if it is not set.

    As the driver reads it: the list ends before the first entry that is -1 or empty.
    """
    if value is None:
        return None
    entries = []
    for entry in value.split(","):
        word = entry.strip()
        if word in ("", "-1", "NoDevFiles"):
            break
        entries.append(word)
    return entries


def entry_for_worker(entries: Sequence[str], worker: int) -> str:
    """The entry of worker ``worker``: workers beyond the list start again at its head (a lock keeps them apart)."""
    return entries[worker % len(entries)]


def bind_worker(environ: MutableMapping[str, str], worker: int | None, installed: Callable[[], Sequence[str]]) -> None:
    """Narrow the variable to one worker's GPU; must happen before CUDA starts in this process.

    ``installed`` gives the UUIDs of all GPUs, asked only where the variable is not set.
    """
    if worker is None:
        return
    entries = listed(environ.get(VARIABLE))
    if entries is None:
        entries = list(installed())
    if entries:
        environ[VARIABLE] = entry_for_worker(entries, worker)
