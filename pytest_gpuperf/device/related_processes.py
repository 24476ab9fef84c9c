"""Processes on a GPU, told apart: those of this test run, and unrelated ones."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_MOST_GENERATIONS = 64


class ProcessFamily:
    """This process, its ancestors and its descendants; under pytest-xdist those of its fellow workers, too.

    They keep to the plugin's lock.  Processes are looked up in ``proc``; where there is none, only this one is known.
    """

    def __init__(self, pid: int | None = None, *, is_worker: bool | None = None, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        own = os.getpid() if pid is None else pid
        worker = "PYTEST_XDIST_WORKER" in os.environ if is_worker is None else is_worker
        lineage = self._lineage(own)
        self._ancestors = frozenset(lineage)
        self._root = lineage[1] if worker and len(lineage) > 1 else own
        """Process whose descendants belong to this test run."""

    def strangers(self, pids: Iterable[int]) -> tuple[int, ...]:
        """The unrelated ones of ``pids``, sorted.

        A process that does not exist here is left out: in a container NVML may give numbers of the host.
        """
        return tuple(sorted({pid for pid in pids if (self._proc / str(pid)).exists() and not self._is_family(pid)}))

    def _is_family(self, pid: int) -> bool:
        return pid in self._ancestors or self._root in self._lineage(pid)

    def _lineage(self, pid: int) -> list[int]:
        """The process, its parent, and so on; without the first process of the machine."""
        found: list[int] = []
        while pid > 1 and len(found) < _MOST_GENERATIONS:
            found.append(pid)
            pid = self._parent(pid)
        return found

    def _parent(self, pid: int) -> int:
        """0 if it cannot be told."""
        try:
            text = (self._proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has ended meanwhile, or this is no Linux
            return 0
        fields = text.rpartition(")")[2].split()  # the name before it may hold anything
        return int(fields[1]) if len(fields) > 1 else 0
