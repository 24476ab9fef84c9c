"""One page of the textbook: a family's question, its two sides, what they gain, what shows it, an exercise."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import counter_tables
import kernel_text
from claims import DOCUMENTS, load_claims
from lessons import Lesson, Station, lesson_of
from machine_code import SHOWN_OPCODES, MachineCode
from pairs import Pair
from recorded import ARCH, GPU, SUITE, Recorded
from textbook_tables import gains, number, pairs_of, shape, table, workloads, wrapped

from pytest_gpuperf.advise.causes import BY_KEY
from pytest_gpuperf.model.evidence import StaticRecord

MOST_LINES = 48
"""Of a diff of the sources; the rest is in the kernels' file."""
CAUSES_PAGE = "../explanation/why-slower.md#the-causes"
OPCODES = "README.md#words"
SET_UP = "README.md#the-exercises"
GATES = "../explanation/static-evidence.md#what-gates"
RED = """\
A test fails, and the run prints without a GPU, among other lines (white space apart),"""
GREEN = f"""\
Without a GPU no test fails: such a change [gates nothing]({GATES}) there, and is told alone. With a GPU the times
decide. Among other lines the run prints (white space apart)"""
UP = "../../example_suite"
CLAIMS = SUITE.parent / "docs" / "results" / "claims.md"
MachineCodes = Mapping[tuple[str, str], MachineCode]
"""By the hashes of the naive and of the optimised code."""


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
    parts = [f"# {family}", wrapped(lesson.question), _answer(station), _links(station)]
    parts += ["## The kernels", f"Their file begins with\n\n{_block('text', kernel_text.head(source))}"]
    if pairs:
        parts += ["The page calls a kernel with its launch and data by these names:", workloads(pairs, recorded)]
    for pair in shown_pairs(family):
        parts += ["## " + f"`{pair.optimised}` over `{pair.naive}`".replace("`", ""), _about(pair)]
        parts += [_source(pair, source, recorded), _machine_code(pair, recorded, codes), _counters(pair, recorded)]
    if lesson.kernels:
        naive, optimised = lesson.kernels
        parts += [f"## {optimised} over {naive}", _diff(kernel_text.difference(source, naive, optimised))]
    if pairs:
        parts += ["## What it gains", gains(pairs, recorded)]
    parts += ["## Exercise", _exercise(family, lesson)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _answer(station: Station) -> str:
    return wrapped(f"In short: {station.answer}") if station.answer else ""


def _links(station: Station) -> str:
    family = station.family
    sources = [DOCUMENTS[name] for name in station.sources if name in DOCUMENTS] or list(DOCUMENTS.values())
    claims = [claim for claim in load_claims().values() if claim.family == family]
    own = sum(claim.origin == "prediction" for claim in claims)
    lines = [
        f"- part of [the textbook](README.md): {station.section}",
        f"- the kernels: [{family}.cu]({UP}/kernels/{family}.cu)",
        f"- the test that checks and measures them: [test_{family}.py]({UP}/test_{family}.py)",
        f"- after {'; '.join(sources)}",
    ]
    if claims:
        counts = f"{len(claims) - own} of these documents" + (f", {own} of our own" if own else "")
        lines.append(f"- statements on this that are tested ({counts}), and what became of them: "
                     f"[claims](../results/claims.md{_anchor(family)})")  # fmt: skip
    return "\n".join(wrapped(line, "  ") for line in lines)


def _anchor(family: str) -> str:
    """Of the family's part of the page about claims, if it has one yet."""
    return f"#{family}" if f"\n### {family}\n" in CLAIMS.read_text(encoding="utf-8") else ""


def _about(pair: Pair) -> str:
    text = f"The naive side, `{pair.naive}`: {pair.why}."
    cause = BY_KEY.get(pair.cause)
    if cause is not None:
        text += f" The plugin calls that [{cause.key}]({CAUSES_PAGE}), and advises: {cause.remedy}."
    return wrapped(text)


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
        return f"{wrapped(f'Both sides are the kernel `{naive.kernel}`. {text.replace(chr(10), chr(32))}')}\n\n{used}"
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
            said.append(f"{name} {shape(shapes[0])} against {shape(shapes[1])}")
    for name, values in (
        ("dynamic shared memory", [f"{one.dynamic_shared_bytes} bytes" for one in (naive, optimised)]),
        ("registers", [str(one.profile.registers) for one in (naive, optimised)]),
        ("occupancy", [f"{one.occupancy.fraction:.0%}" if one.occupancy else "" for one in (naive, optimised)]),
    ):
        if values[0] != values[1]:
            said.append(f"{name} {values[0]} against {values[1]}")
    if not said and naive.profile.code_hash == optimised.profile.code_hash:
        return "Launch and machine code are the same as well: what differs is the data."
    return wrapped(f"What differs: {', '.join(said)}.") if said else ""


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
    head = [f"instructions ({ARCH})", "all", *names]
    sides = [[str(one.instructions), *(str(counts[name][side]) for name in names)]
             for side, one in enumerate((naive, optimised))]  # fmt: skip
    counted = table(head, [["naive", *sides[0]], ["optimised", *sides[1]]])
    return "\n\n".join(
        [f"In the machine code, by [opcode]({OPCODES}):", counted, _diff(code.decisive) if code.decisive else ""]
    ).rstrip()


def _counters(pair: Pair, recorded: Recorded) -> str:
    rows = counter_tables.rows(pair, recorded)
    if not rows:
        return ""
    cells = [[row.name, number(row.naive), number(row.optimised)] for row in rows]
    counted = table([f"counted on an {GPU.removeprefix('nvidia-').upper()}", pair.naive, pair.optimised], cells)
    return f"What shows it on the GPU, of one run:\n\n{counted}"


def _exercise(family: str, lesson: Lesson) -> str:
    exercise = lesson.exercise
    language = "cuda" if exercise.file.endswith(".cu") else ""  # a piece of a line is no Python to be formatted
    return "\n\n".join([
        f"In [{exercise.file}]({UP}/{exercise.file}) replace", _block(language, exercise.replace),
        "by", _block(language, exercise.by),
        f"and run, in a checkout that is [set up]({SET_UP}),", f"    {' '.join(exercise.command(family))}",
        wrapped(RED if exercise.fails else GREEN), _block("", "\n".join(exercise.see)), wrapped(exercise.because),
        wrapped(f"Mend it again with `git checkout {SUITE.name}/{exercise.file}`, and run the same command: "
                "no test fails, and what you changed is UNCHANGED again."),
    ])  # fmt: skip


def _block(language: str, text: str) -> str:
    return f"```{language}\n{textwrap.dedent(text)}\n```"
