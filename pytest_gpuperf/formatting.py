"""Figures as short text: the one place that knows how a number is written, for every kind of report.

And the one that knows which text a reader's terminal or a CI job would take for more than text.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence

import msgspec

from pytest_gpuperf.model.verdict import TimeFigures

UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that control a terminal, break a line, reverse the reading order or are no UTF-8."""
_COMMAND = re.compile(r"^(\s*):(?=:[A-Za-z])|#(?=#\w*\[)", re.MULTILINE)
"""How a line begins that is a command to GitHub's runner; those of Azure and TeamCity may stand anywhere in one."""


def visible(text: str) -> str:
    """The text with each character that is not printed written as ``\\x1b``; line ends and tabs stay."""
    return UNPRINTABLE.sub(lambda one: one[0] if one[0] in "\n\t" else ascii(one[0])[1:-1], text)


def escape_ci_commands(text: str) -> str:
    """``visible`` text of which no line is a command to a CI job: ``\\x3a:error``, ``\\x23#vso[``.

    Names of tests and workloads stay as they are: ``test_x.py::test_y[a]``.
    """
    return _COMMAND.sub(lambda one: f"{one[1]}\\x3a" if one[0].endswith(":") else "\\x23", visible(text))


def numbered(number: int, noun: str, one: str = "", several: str = "") -> str:
    """``1 workload has``, ``2 workloads have``; without verbs ``1 workload``, ``2 workloads``."""
    return f"{number} {noun} {one}".rstrip() if number == 1 else f"{number} {noun}s {several}".rstrip()


def first_of(items: Sequence[object], most: int, comma: str = "") -> str:
    """``a, b and 3 more``: the first few, and how many more; a ``comma`` stands before the last words."""
    shown = ", ".join(map(str, items[:most]))
    return f"{shown}{comma} and {len(items) - most} more" if len(items) > most else shown


def indented_json(document: object) -> bytes:
    """A document for programs that people look into, too."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def utc_now() -> str:
    """``2026-11-22T10:00:00Z``: ISO 8601, seconds."""
    return f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


ROUNDED_UP = 0.9995
"""From this share of a unit on, three significant digits are a whole one: 999.6 us are 1 ms."""


def duration(ns: float) -> str:
    """``51.2 us``: three significant digits in the unit that fits."""
    return _prefixed(ns, "s", ((1e9, ""), (1e6, "m"), (1e3, "u"))) or f"{_digits(ns)} ns"


def quantity(value: float, unit: str = "") -> str:
    """``12.3 MB``, ``4.21 TB/s``, ``1.05 G``: a count, an amount or a rate, by powers of ten from ten thousand on."""
    prefixes = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
    small = abs(value) < 1e4 * ROUNDED_UP
    return f"{value:.4g} {unit}".rstrip() if small else _prefixed(value, unit, prefixes)


def _prefixed(value: float, unit: str, prefixes: Sequence[tuple[float, str]]) -> str:
    """The value in the largest unit that it reaches; empty if it reaches none."""
    scale, prefix = next((one for one in prefixes if abs(value) >= one[0] * ROUNDED_UP), (0.0, ""))
    return f"{_digits(value / scale)} {prefix}{unit}" if scale else ""


def _digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 * ROUNDED_UP else f"{value:.0f}"


def percent(fraction: float) -> str:
    """``+2.1 %``: a signed change."""
    return f"{fraction * 100:+.1f} %" if abs(fraction) >= 0.0995 / 100 else f"{fraction * 100:+.2f} %"


def ratio(figures: TimeFigures) -> str:
    """``x1.021 [1.018, 1.024]``; empty without a ratio."""
    if figures.ratio is None:
        return ""
    interval = "" if figures.interval is None else " [{:.3f}, {:.3f}]".format(*figures.interval)
    return f"x{figures.ratio:.3f}{interval}"


def time_step(figures: TimeFigures) -> str:
    """``x1.021 [1.018, 1.024]  51.2 us -> 52.3 us``: as much of it as is known."""
    times = ""
    if figures.before_ns is not None and figures.after_ns is not None:
        times = f"{duration(figures.before_ns)} -> {duration(figures.after_ns)}"
    return "  ".join(filter(None, [ratio(figures), times]))


def time_basis(figures: TimeFigures) -> str:
    """``tolerance 0.5 %, paired, 23+10 blocks, E=7.0e5 (need 5.0e5), interval 95 % anytime``: what a ratio rests on."""
    least = f" ({figures.min_delta_us:g} us)" if figures.min_delta_us else ""
    parts = [f"tolerance {figures.tolerance * 100:.3g} %{least}"] if figures.tolerance else []
    if figures.method != "paired":
        return ", ".join([*parts, METHODS[figures.method]])
    second = figures.confirm_blocks
    parts += ["paired", f"{figures.blocks}+{second} blocks" if second else numbered(figures.blocks, "block")]
    if figures.log_e is not None and figures.log_e_needed is not None and figures.log_e > 0:
        parts.append(f"E={e_value(figures.log_e)} (need {e_value(figures.log_e_needed)})")
    if figures.interval is not None:
        parts.append("interval 95 % anytime")
    return ", ".join(parts)


METHODS = {"identity": "equal machine code", "record": "against the recorded time"}
"""Where nothing was paired."""


def e_value(log_e: float) -> str:
    """``7.0e5``, of a natural logarithm."""
    mantissa, exponent = f"{math.exp(log_e):.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"
