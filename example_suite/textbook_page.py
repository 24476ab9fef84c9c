"""One page of the textbook: a family's question, its two sides, what they gain, what shows it, an exercise."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import counter_tables
import kernel_text
from claims import DOCUMENTS, load_claims
from lessons import Lesson, Station, lesson_of
from machine_code import SHOWN_OPCODES, MachineCode
from pairs import PAIRS, Pair
from recorded import ARCH, GPU, SUITE, Recorded

from pytest_gpuperf.advise.causes import CAUSES
from pytest_gpuperf.formatting import duration
from pytest_gpuperf.model.evidence import StaticRecord

MOST_LINES = 48
"""Of a diff of the sources; the rest is in the kernels' file."""
CAUSES_PAGE = "../explanation/why-slower.md#the-causes"
UP = "../../example_suite"
WIDTH = 120
CLAIMS = SUITE.parent / "docs" / "results" / "claims.md"
WALL = """\
Gains are by the clock on the wall (claims {claims}): the times of the plugin are sums over copies and kernels, which do
not become less if they overlap."""

MachineCodes = Mapping[tuple[str, str], MachineCode]
"""By the hashes of the naive and of the optimised code."""


def pairs_of(family: str) -> list[Pair]:
    return [pair for pair in PAIRS if pair.family == family]


def shown_pairs(family: str) -> list[Pair]:
    """Those that the page shows in detail."""
    pairs, wanted = pairs_of(family), lesson_of(family).pairs
    if unknown := set(wanted) - {pair.optimised for pair in pairs}:
        raise ValueError(f"the lesson of {family} shows {', '.join(sorted(unknown))}, which no pair has")
    return [next(pair for pair in pairs if pair.optimised == name) for name in wanted] or pairs[:1]


def code_pair(pair: Pair, recorded: Recorded) -> tuple[StaticRecord, StaticRecord] | None:
    """Machine code of both sides, if it differs."""
    naive, optimised = (recorded.static(pair, name) for name in (pair.naive, pair.optimised))
    if naive is None or optimised is None or naive.profile.code_hash == optimised.profile.code_hash:
        return None
    return naive, optimised


def page(station: Station, recorded: Recorded, codes: MachineCodes) -> str:
    """The page in Markdown; the same for the same kernels, baselines and counters."""
    family, lesson = station.family, lesson_of(station.family)
    pairs = pairs_of(family)
    source = (SUITE / "kernels" / f"{family}.cu").read_text(encoding="utf-8")
    parts = [f"# {family}", _wrapped(lesson.question), _links(station)]
    for pair in shown_pairs(family):
        parts += ["## " + f"`{pair.optimised}` over `{pair.naive}`".replace("`", ""), _about(pair)]
        parts += [_source(pair, source, recorded), _machine_code(pair, recorded, codes), _counters(pair, recorded)]
    if lesson.kernels:
        naive, optimised = lesson.kernels
        parts += [f"## {optimised} over {naive}", _diff(kernel_text.difference(source, naive, optimised))]
    if pairs:
        parts += ["## What it gains", _gains(pairs, recorded)]
    parts += ["## Exercise", _exercise(family, lesson)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _links(station: Station) -> str:
    family = station.family
    sources = [DOCUMENTS[name] for name in station.sources if name in DOCUMENTS] or list(DOCUMENTS.values())
    claims = [claim for claim in load_claims().values() if claim.family == family]
    own = sum(claim.origin == "prediction" for claim in claims)
    lines = [
        f"- part of [the textbook](README.md): {station.section}",
        f"- the kernels, with a head that explains them: [{family}.cu]({UP}/kernels/{family}.cu)",
        f"- the test that checks and measures them: [test_{family}.py]({UP}/test_{family}.py)",
        f"- after {'; '.join(sources)}",
    ]
    if claims:
        counts = f"{len(claims) - own} of the documents" + (f", {own} of our own" if own else "")
        lines.append(f"- claims ({counts}), and what became of them: "
                     f"[claims](../results/claims.md{_anchor(family)})")  # fmt: skip
    return "\n".join(_wrapped(line, "  ") for line in lines)


def _anchor(family: str) -> str:
    """Of the family's part of the page about claims, if it has one yet."""
    return f"#{family}" if f"\n### {family}\n" in CLAIMS.read_text(encoding="utf-8") else ""


def _about(pair: Pair) -> str:
    text = f"The naive side, `{pair.naive}`: {pair.why}."
    cause = next((one for one in CAUSES if one.key == pair.cause), None)
    if cause is not None:
        text += f" Advice calls that [{cause.key}]({CAUSES_PAGE}), and says: {cause.remedy}."
    return _wrapped(text)


def _source(pair: Pair, source: str, recorded: Recorded) -> str:
    records = [recorded.static(pair, name) for name in (pair.naive, pair.optimised)]
    naive, optimised = records
    if naive is None or optimised is None:
        if not any(recorded.time(pair, name) for name in (pair.naive, pair.optimised)):
            return "Neither machine code nor times of both sides are on record yet."
        who = "Both sides launch" if naive is optimised else "One side launches"
        return f"{who} several operations from Python: compare them in the test."
    lines = kernel_text.difference(source, naive.kernel, optimised.kernel)
    common = kernel_text.shared(source, naive.kernel, optimised.kernel)
    used = _block("cuda", "\n".join(_cut(common))) if common else ""
    text = _launches(pair, naive, optimised, recorded)
    if not lines:
        return f"{_wrapped(f'Both sides are the kernel `{naive.kernel}`. {text.replace(chr(10), chr(32))}')}\n\n{used}"
    both = f"Both use\n\n{used}" if used else ""
    diff = f"In the source, from naive (-) to optimised (+):\n\n{_diff(lines)}"
    return "\n\n".join(part for part in (diff, both, text.replace("differs:", "differs besides:")) if part)


def _launches(pair: Pair, naive: StaticRecord, optimised: StaticRecord, recorded: Recorded) -> str:
    """What differs besides the source."""
    said = []
    times = [recorded.time(pair, name) for name in (pair.naive, pair.optimised)]
    for name, of in (("grid", 0), ("block", 1)):
        shapes = [(time.grid, time.block)[of] for time in times if time] or [(one.grid, one.block)[of]
                  for one in (naive, optimised)]  # fmt: skip
        if len(shapes) == 2 and shapes[0] != shapes[1]:
            said.append(f"{name} {_shape(shapes[0])} against {_shape(shapes[1])}")
    for name, values in (
        ("dynamic shared memory", [f"{one.dynamic_shared_bytes} bytes" for one in (naive, optimised)]),
        ("registers", [str(one.profile.registers) for one in (naive, optimised)]),
        ("occupancy", [f"{one.occupancy.fraction:.0%}" if one.occupancy else "" for one in (naive, optimised)]),
    ):
        if values[0] != values[1]:
            said.append(f"{name} {values[0]} against {values[1]}")
    if not said and naive.profile.code_hash == optimised.profile.code_hash:
        return "Launch and machine code are the same as well: what differs is the data."
    return _wrapped(f"What differs: {', '.join(said)}.") if said else ""


def _shape(of: tuple[int, int, int] | None) -> str:
    sides = list(of or ())
    while len(sides) > 1 and sides[-1] == 1:
        del sides[-1]
    return " x ".join(map(str, sides)) or "unknown"


def _diff(lines: Sequence[str]) -> str:
    return "\n".join(["```diff", *_cut(lines), "```"])


def _cut(lines: Sequence[str]) -> list[str]:
    return [*lines[:MOST_LINES], *([f"... {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else [])]


def _machine_code(pair: Pair, recorded: Recorded, codes: MachineCodes) -> str:
    found = code_pair(pair, recorded)
    if found is None:
        return ""
    naive, optimised = (one.profile for one in found)
    code = codes[naive.code_hash, optimised.code_hash]
    if not code.counts:
        return (
            f"In the machine code ({ARCH}) the {naive.instructions} opcodes are the same. Some operands differ:\n\n"
            + (_diff(code.decisive))
        )
    names = [name for name, *_ in code.counts[:SHOWN_OPCODES]]
    counts = {name: rest for name, *rest in code.counts}
    head = [f"{ARCH}, instructions", "all", *names]
    sides = [[str(one.instructions), *(str(counts[name][side]) for name in names)]
             for side, one in enumerate((naive, optimised))]  # fmt: skip
    table = _table(head, [["naive", *sides[0]], ["optimised", *sides[1]]])
    return "\n\n".join(["In the machine code:", table, _diff(code.decisive) if code.decisive else ""]).rstrip()


def _counters(pair: Pair, recorded: Recorded) -> str:
    rows = counter_tables.rows(pair, recorded)
    if not rows:
        return ""
    cells = [[row.name, _number(row.naive), _number(row.optimised)] for row in rows]
    table = _table([f"counted on an {GPU.removeprefix('nvidia-').upper()}", pair.naive, pair.optimised], cells)
    return f"What shows it on the GPU, of one run:\n\n{table}"


def _gains(pairs: Sequence[Pair], recorded: Recorded) -> str:
    rows = []
    for pair in pairs:
        gain = recorded.gain(pair)
        times = [recorded.time_ns(pair, name) for name in (pair.naive, pair.optimised)]
        shown = ["" if ns is None or pair.wall else duration(ns) for ns in times]
        rows.append([f"{pair.optimised} over {pair.naive}", *shown, f"{pair.work:g}",
                     "not on record yet" if gain is None else _number(gain),
                     pair.cause or "several things"])  # fmt: skip
    family = pairs[0].family
    text = [f"Gain per work done on an {GPU.removeprefix('nvidia-').upper()}: the ratio of the times, times the ratio "
            "of the work."]  # fmt: skip
    picture = f"![Gains of {family}](../pictures/textbook/{family}.svg)" if recorded_gains(family, recorded) else ""
    walls = [pair.wall for pair in pairs if pair.wall]
    noted = _wrapped(WALL.format(claims=", ".join(walls))) if walls else ""
    table = _table(["pair", "naive", "optimised", "work", "gain", "slow of"], rows)
    return "\n\n".join(part for part in (_wrapped(text[0]), picture, table, noted) if part)


def recorded_gains(family: str, recorded: Recorded) -> dict[str, float]:
    """Gain per work done of each pair on record, to three digits: what the family's picture shows."""
    gains = {f"{pair.optimised} over {pair.naive}": recorded.gain(pair) for pair in pairs_of(family)}
    return {name: float(f"{gain:.3g}") for name, gain in gains.items() if gain is not None}


def _exercise(family: str, lesson: Lesson) -> str:
    exercise = lesson.exercise
    language = "cuda" if exercise.file.endswith(".cu") else ""  # a piece of a line is no Python to be formatted
    return "\n\n".join([
        f"In [{exercise.file}]({UP}/{exercise.file}) replace", _block(language, exercise.replace),
        "by", _block(language, exercise.by),
        "and run", f"    {' '.join(exercise.command(family))}",
        "Without a GPU it prints, among other lines (white space apart),", _block("", "\n".join(exercise.see)),
        _wrapped(exercise.because), f"Mend it again: `git checkout {SUITE.name}/{exercise.file}`.",
    ])  # fmt: skip


def _block(language: str, text: str) -> str:
    return f"```{language}\n{textwrap.dedent(text)}\n```"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _number(value: float) -> str:
    """Three digits; counts in full up to a million."""
    if value >= 1e6:
        return f"{value / 1e6:.3g} million" if value < 1e9 else f"{value / 1e9:.3g} billion"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _wrapped(text: str, indent: str = "") -> str:
    return "\n".join(
        textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent)
    )
