"""Exceptions between a source file and its static evidence: one class per kind a caller may treat differently.

Every message names the file, option or name at fault and says what to do.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import first_of

MOST_LOG_LINES = 16
"""Of a compiler that a message quotes: a file of a whole program has a hundred errors, all for one reason."""
MOST_KERNELS = 30
"""That a message names."""
ERROR_LINE = re.compile(r"^[^\n]*\b(?:error|fatal)\b[^\n]*", re.M)
STATIC_EXTRA = 'pip install "pytest-gpuperf[static]"'


class CompileProblem(GpuperfError):
    """Base of everything this package raises on purpose."""


class CompileError(CompileProblem):
    """The compiler rejected the source.  The message starts with ``file:line:`` and quotes the compiler."""

    def __init__(self, file: str, line: int | None, reason: str, log: str, remedy: str = "") -> None:
        self.file = file
        """Path as the user gave it; for a mistake inside a header, the header."""
        self.line = line
        """1-based; None if the compiler named no line (an error of the assembler, for one)."""
        self.log = log
        """The compiler's own words, whole."""
        place = file if line is None else f"{file}:{line}"
        super().__init__("\n".join(filter(None, (f"{place}: {reason}", _excerpt(log), remedy))))


def _excerpt(log: str) -> str:
    """The log, if it is short; else as much of it as a screen bears, from its first error on."""
    lines = log.strip().splitlines()
    if len(lines) <= MOST_LOG_LINES:
        return "\n".join(lines)
    first = next((number for number, line in enumerate(lines) if ERROR_LINE.match(line)), 0)
    shown = lines[first : first + MOST_LOG_LINES]
    return "\n".join([*shown, f"({len(lines) - len(shown)} more lines of the compiler are in this exception's log)"])


class UnknownKernel(CompileProblem):
    """No kernel of that name in the source; lists those there are."""

    def __init__(self, name: str, file: str, available: Sequence[str] | None, hint: str = "") -> None:
        self.available = tuple(sorted(available or ()))
        """Names of the kernels there are; empty too if the source was not compiled that far."""
        message = f'no kernel "{name}" in {file}'
        if self.available:
            near = difflib.get_close_matches(name, self.available, n=2)
            message += f"; there {'is' if len(self.available) == 1 else 'are'}: "
            message += first_of(self.available, MOST_KERNELS)
            message += f". Did you mean {' or '.join(near)}?" if near else ""
        elif available is not None:
            message += (
                ": it compiles, but has no __global__ function. A template needs an instance, and code in an #if "
                'needs its macro, options=["-DNAME"], or its architecture, arch='
            )
        super().__init__(f"{message}\n{hint}" if hint else message)


class ToolchainMissing(CompileProblem):
    """NVRTC or nvdisasm is not there, or not one that works; names the remedy."""


class BadOption(CompileProblem):
    """A compiler option that NVRTC or this plugin does not accept."""


class BadCubin(CompileProblem):
    """These bytes are no cubin, or a cubin that is cut short or contradicts itself or its baseline."""


class BadContainer(BadCubin):
    """A file that holds cubins, or should, cannot be taken apart."""


class UnsupportedKernel(CompileProblem):
    """Not a kernel of the library that it was said to be of, or one that only that library can compile or launch."""


class UnknownArchitecture(CompileProblem):
    """Not an architecture that can be compiled for, or one without known limits; lists those known."""

    def __init__(self, arch: str, known: Iterable[str], why: str = "") -> None:
        self.arch, names = arch, list(known)
        meant = [f"sm_{one.replace('.', '')}" for one in re.findall(r"\d+(?:\.\d)?[af]?", arch)]  # compute_90, 9.0
        near = [one for one in meant if one.rstrip("af") in names and one != arch]
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        if not near and meant and int(meant[0].removeprefix("sm_").rstrip("af")) < 75:
            hint = "; CUDA 13 dropped it"
        super().__init__(f"{arch!r} is not a known architecture{why}{hint}; known: {', '.join(names)}")


class CompileCacheWarning(UserWarning):
    """The compile cache cannot be used; compilation goes on without it."""
