"""One page of the textbook: a family's question, its gains, the two sides of its pairs, and an exercise."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from pages import counted, machine_code, source
from pages.facts import ARCH, PAIRS, SUITE, Pair, Recorded, command, lesson_of, stations
from pages.machine_code import Code

from pytest_gpuperf.formatting import duration
from pytest_gpuperf.model.evidence import StaticRecord

CLAIMS = SUITE.parent / "docs" / "results" / "claims.md"
MOST_OPCODES = 6


def wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent)


TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")), undefined=jinja2.StrictUndefined,
    trim_blocks=True, keep_trailing_newline=True,
)  # fmt: skip
TEMPLATES.filters["wrapped"] = wrapped


def index() -> str:
    sections = itertools.groupby(stations(), key=lambda station: station.section)
    return TEMPLATES.get_template("index.jinja").render(sections=sections, lesson_of=lesson_of)


def pages(recorded: Recorded) -> dict[str, str]:
    """Text of each family's page, by the name of its file."""
    pairs = [pair for station in stations() for pair in shown_pairs(station.family)]
    records = [found for pair in pairs for name in pair.names if (found := recorded.static(pair, name))]
    codes = machine_code.codes_of(records, recorded)
    return {f"{station.family}.md": page(station, recorded, codes) for station in stations()}


def pairs_of(family: str) -> list[Pair]:
    return [pair for pair in PAIRS if pair.family == family]


def shown_pairs(family: str) -> list[Pair]:
    """Those that the page shows in detail.  Raises ``KeyError``."""
    pairs = {pair.optimised: pair for pair in pairs_of(family)}
    return [pairs[name] for name in lesson_of(family).pairs] or list(pairs.values())[:1]


def page(station: Any, recorded: Recorded, codes: Mapping[str, Code]) -> str:
    """In Markdown; the same for the same kernels, baselines and counters."""
    family, lesson = station.family, lesson_of(station.family)
    text = (SUITE / "kernels" / f"{family}.cu").read_text(encoding="utf-8")
    sections = [{"title": pair.title, "parts": list(_parts(pair, text, recorded, codes))}
                for pair in shown_pairs(family)]  # fmt: skip
    if lesson.kernels:
        naive, optimised = lesson.kernels
        sections += [{"title": f"{optimised} over {naive}", "parts": [_diff(source.difference(text, *lesson.kernels))]}]
    change = (textwrap.indent(textwrap.dedent(side), sign, lambda _: True)
              for sign, side in (("-", lesson.exercise.replace), ("+", lesson.exercise.by)))  # fmt: skip
    anchor = f"#{family}" if re.search(rf"^#+ {family}$", CLAIMS.read_text(encoding="utf-8"), re.MULTILINE) else ""
    return TEMPLATES.get_template("page.jinja").render(
        station=station, lesson=lesson, anchor=anchor, gains=_gains(pairs_of(family), recorded), sections=sections,
        exercise=lesson.exercise, change="\n".join(change), command=" ".join(command(family)),
    )  # fmt: skip


def _gains(pairs: Sequence[Pair], recorded: Recorded) -> str:
    """Times and gain of each pair, and what its naive side does."""
    rows = [["pair", "naive", "optimised", "gain", "the naive side", "cause"]]
    for pair in pairs:
        gain, times = recorded.gain(pair), [recorded.time_ns(pair, name) for name in pair.names]
        said = "not recorded" if gain is None else f"{counted.number(gain)}{pair.gain_of}"
        shown = ("" if ns is None or pair.wall else duration(ns) for ns in times)
        rows.append([pair.title, *shown, said, pair.why, pair.cause or "several"])
    return _table(rows) if pairs else ""


def _parts(pair: Pair, text: str, recorded: Recorded, codes: Mapping[str, Code]) -> Iterable[str]:
    """Source, launch, machine code and counters: what differs in each."""
    naive, optimised = (recorded.static(pair, name) for name in pair.names)
    if naive is None or optimised is None:
        yield "A side launches several operations from Python: compare them in the test."
    else:
        lines = source.difference(text, naive.kernel, optimised.kernel)
        yield _diff(lines) if lines else f"Both sides are the kernel `{naive.kernel}`."
        said = _launches(pair, naive, optimised, recorded)
        if said or not lines:
            yield wrapped(f"Naive to optimised: {said or 'other data, launched alike'}.")
        if naive.profile.code_hash != optimised.profile.code_hash:
            yield from _opcodes(*(codes[one.profile.code_hash] for one in (naive, optimised)))
    if rows := counted.rows(pair, recorded):
        yield _table([("counted on an H200", pair.naive, pair.optimised), *rows])


def _launches(pair: Pair, naive: StaticRecord, optimised: StaticRecord, recorded: Recorded) -> str:
    """What differs between the launches of two records, and how many of their threads an SM holds."""
    times = [recorded.time(pair, name) for name in pair.names]
    sides = [(time or record, record) for time, record in zip(times, (naive, optimised), strict=True)]
    figures: Mapping[str, Callable[[Any, StaticRecord], object]] = {
        "grid": lambda launch, _: launch.grid or "unknown",
        "block": lambda launch, _: launch.block or "unknown",
        "dynamic shared memory": lambda _, record: f"{record.dynamic_shared_bytes} bytes",
        "registers": lambda _, record: record.profile.registers,
        "occupancy": lambda _, record: f"{record.occupancy.fraction:.0%}" if record.occupancy else "unknown",
    }
    rows = [(name, *(figure(*side) for side in sides)) for name, figure in figures.items()]
    return ", ".join(f"{name} {was} to {now}" for name, was, now in rows if was != now)


def _opcodes(naive: Code, optimised: Code) -> Iterable[str]:
    rows = [f"{name} {was} to {now}" for name, was, now in machine_code.counts(naive, optimised)[:MOST_OPCODES]]
    said = f"{len(naive)} to {len(optimised)} [instructions](README.md#words) ({ARCH}): {', '.join(rows)}."
    yield wrapped(said if rows else f"The same {len(naive)} opcodes ({ARCH}), other operands:")
    if shown := machine_code.decisive(naive, optimised):
        yield _diff(shown)


def _diff(lines: Sequence[str]) -> str:
    return "\n".join(["```diff", *lines, "```"])


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
