"""Names for people of a stranger's symbols: demangled in a process of its own, whose time and memory have limits.

A mangled name of some hundred characters can stand for gigabytes of text, and the C++ runtime would write them all.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
from collections.abc import Iterable, Sequence

from pytest_gpuperf.compile.machine_code.symbols import plain_name, readable
from pytest_gpuperf.model.safe_python import module_command

_LIMIT_S = 10
_MEMORY_BYTES = 1 << 30
_LONGEST = 100_000


def names_of(symbols: Iterable[str]) -> dict[str, str]:
    """``readable`` names by symbol; those that could not be demangled have the name that plain reading gives."""
    wanted = sorted({symbol for symbol in symbols if symbol.startswith("_Z")})
    found = dict.fromkeys(symbols, "")
    told: list[str] = []
    if wanted:
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):
            done = subprocess.run(
                module_command(__name__), input="\n".join(wanted), capture_output=True, encoding="utf-8",
                errors="replace", timeout=_LIMIT_S,
            )  # fmt: skip
            told = done.stdout.split("\n")[:-1]
    names = dict(zip(wanted, told, strict=False))
    return {symbol: _short(names.get(symbol) or plain_name(symbol)) for symbol in found}


def _short(name: str) -> str:
    """Without the namespaces that libraries put their version into."""
    return name.replace("CUB_NS::", "").replace("THRUST_NS::", "")


def main(_arguments: Sequence[str]) -> int:
    """Write the readable name of each symbol that comes in, a line each, until a limit ends it."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_LIMIT_S, _LIMIT_S))
    for line in sys.stdin.read().split("\n"):
        print(readable(line)[:_LONGEST].replace("\n", " "), flush=True)
    return 0
