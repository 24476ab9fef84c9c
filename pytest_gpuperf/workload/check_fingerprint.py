"""What checks a workload's result, as a hash: a test of another revision that checks otherwise does other work."""

from __future__ import annotations

import dis
import functools
import hashlib
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any


def fingerprint(check: Callable[[], Any] | None) -> str:
    """Of a function's code: what it does, calls and compares with, not where it stands nor how it names its variables.

    Empty without a check, and the type's name for a callable without code of its own.
    """
    if check is None:
        return ""
    while isinstance(check, functools.partial):
        check = check.func
    code = getattr(check, "__code__", None)
    if not isinstance(code, CodeType):
        return type(check).__qualname__
    return hashlib.sha256("\n".join(_parts(code)).encode("utf-8", "replace")).hexdigest()[:16]


def _parts(code: CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr(code.co_names)
    used = (one.argval for one in dis.get_instructions(code) if one.opcode in dis.hasconst)
    for constant in used:  # not co_consts: Python 3.14 has some there that nothing uses
        if isinstance(constant, CodeType):
            yield from _parts(constant)
        else:
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)
