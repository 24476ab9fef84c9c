"""Writes the textbook: a page per family and an index in docs/textbook, pictures in docs/pictures/textbook.

    python example_suite/textbook.py              # pages, and pictures whose figures have changed
    python example_suite/textbook.py --redraw     # all pictures
    python example_suite/textbook.py --check      # write nothing; status 1 if a page or a picture is out of date

Run it after baselines, counters, claims, kernels or lessons have changed.  Questions and exercises are in
``lessons.py``; all else comes from the kernels, ``pairs.json``, baselines and counters.  Needs no GPU.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import textbook_pictures
from lessons import README, NoLesson, Station, families, lesson_of, tour
from machine_code import machine_codes
from recorded import SUITE, Recorded
from roofline import picture as roofline_of
from textbook_page import MachineCodes, code_pair, page, shown_pairs
from textbook_tables import recorded_gains

DOCS = SUITE.parent / "docs"
PAGES = DOCS / "textbook"
PICTURES = DOCS / "pictures" / "textbook"
ROOFLINE = "roofline"
INDEX = """\
# The textbook

A page for each family of the [example suite](../../example_suite/README.md), in the order of its tour: what it asks,
how its two sides differ in the source and in the machine code, what that gains on an H200 and which counters show it,
and something to try. Times, counters and machine code are those of the committed baselines (NVRTC 13.0, sm_90).

## The exercises

An exercise is a change of one file, a command, and what it prints. It needs no GPU. On a machine with a GPU the same
command also checks results and measures times. Do them in a checkout of this repository, set up once with

    make test-setup && . .venv/bin/activate

Each ends with the command that mends the file. What you change besides is shown by `git diff`.

## Words

A *warp* is 32 threads that issue together. A *sector* is 32 bytes of memory, the least that is moved. A *scheduler*
issues one instruction per cycle; an SM has four. *Occupancy* is the share of its places for warps that an SM fills. A
*pair* is two workloads that do the same: the naive one slowly, the optimised one fast. *Gain* is how many times faster
the optimised side does the same work. A *workload* is a kernel with its launch and its data, under the name that its
test gives it. *Static* is what the machine code tells without a run. Its verdicts: UNCHANGED is the same machine code,
SAME is other machine code of which no figure that gates got worse, WORSE fails the test.

*Opcodes* are the instructions of the machine code (SASS), which `cuobjdump -sass` shows; NVIDIA
[lists them](https://docs.nvidia.com/cuda/cuda-binary-utilities/index.html#instruction-set-reference) with a few words
each. F, D, H and I before a name are float, double, half and integer: FFMA multiplies and adds floats. LDG and STG load
from and store to global memory, LDS and STS shared, LDL and STL local. MUFU is the special-function unit: MUFU.RCP is a
reciprocal. BAR is a barrier, BRA a branch, and BSSY with BSYNC brackets a part in which a warp may diverge.

## The suite under the roofs

![Roofline of the suite](../pictures/textbook/roofline.svg)

Each arrow goes from the naive side of a pair to the optimised one. Upwards is faster. To the right is less traffic with
the memory for the same operations. The roofs are the most that a workload of this suite reaches on the same GPU:
{roofs}. Operations are those that a test declares, or else those that were counted in single precision; where they were
counted, an optimised side that needs fewer of them has an arrow that points down. Left out are pairs without such
operations, and pairs of which a side has not been counted.
"""


def stations() -> list[Station]:
    """Every family; one that the tour lacks comes last."""
    known = tour(README.read_text(encoding="utf-8"))
    toured = {station.family: station for station in known}
    return [toured.get(family, Station(family, "Others", ())) for family in families()]


def machine_codes_of(names: Sequence[str], recorded: Recorded) -> MachineCodes:
    """Of all pairs that pages show, disassembled together."""
    pairs = [found for name in names for pair in shown_pairs(name) if (found := code_pair(pair, recorded))]
    keys = [(naive.profile.code_hash, optimised.profile.code_hash) for naive, optimised in pairs]
    return dict(zip(keys, machine_codes(pairs), strict=True))


def pages(recorded: Recorded) -> dict[str, str]:
    """Name and text of every page.  Raises ``NoLesson``."""
    all_stations = stations()
    codes = machine_codes_of([station.family for station in all_stations], recorded)
    texts = {f"{station.family}.md": page(station, recorded, codes) for station in all_stations}
    return {"README.md": index(all_stations, recorded), **texts}


def index(all_stations: Sequence[Station], recorded: Recorded) -> str:
    """The first page, with each family and its question."""
    roofs = roofline_of(recorded).roofs
    text = ", ".join(f"{roof.name} by `{roof.workload}`" for roof in roofs)
    parts = [_wrapped_paragraphs(INDEX.format(roofs=text))]
    for section, group in itertools.groupby(all_stations, key=lambda station: station.section):
        parts += [f"## {section}", "\n".join(_entry(station.family) for station in group)]
    return "\n\n".join(parts) + "\n"


def _entry(family: str) -> str:
    return textwrap.fill(
        f"- [{family}]({family}.md): {lesson_of(family).question}", 120, subsequent_indent="  ", break_on_hyphens=False
    )


def _wrapped_paragraphs(text: str) -> str:
    return (
        "\n\n".join(
            paragraph if paragraph.startswith(("#", "    ")) else textwrap.fill(paragraph, 120, break_on_hyphens=False)
            for paragraph in text.strip().split("\n\n")
        )
        + "\n"
    )


def picture_data(recorded: Recorded) -> dict[str, object]:
    """What each picture shows, by the name of its file; none for a family without gains on record."""
    gains: Mapping[str, Mapping[str, float]] = {family: recorded_gains(family, recorded) for family in families()}
    found: dict[str, object] = {family: of for family, of in gains.items() if of}
    return {**found, ROOFLINE: roofline_of(recorded)}


def stale_pictures(recorded: Recorded) -> list[str]:
    """Names of pictures that show other figures than those on record, and of those that nothing is on record of."""
    data = picture_data(recorded)
    drawn = {name: textbook_pictures.drawn_from(PICTURES / f"{name}.svg") for name in data}
    changed = [name for name, of in data.items() if drawn[name] != textbook_pictures.figures_of(of)]
    return changed + sorted(path.stem for path in PICTURES.glob("*.svg") if path.stem not in data)


def stale_pages(texts: Mapping[str, str]) -> list[str]:
    """Names of pages that differ from what is in the folder, and of those that belong to no family."""
    there = {path.name: path.read_text(encoding="utf-8") for path in PAGES.glob("*.md")}
    return [name for name in sorted(texts.keys() | there.keys()) if texts.get(name) != there.get(name)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the textbook from kernels, lessons, baselines and counters.")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if anything is out of date")
    parser.add_argument("--redraw", action="store_true", help="draw all pictures, whatever they show")
    chosen = parser.parse_args(arguments)
    recorded = Recorded()
    try:
        texts = pages(recorded)
    except NoLesson as problem:
        print(f"textbook: {problem}", file=sys.stderr)
        return 1
    drawn = picture_data(recorded)
    pictures = list(drawn) if chosen.redraw else stale_pictures(recorded)
    stale = stale_pages(texts)
    if chosen.check:
        for name in (*stale, *pictures):
            print(f"textbook: out of date: {name}", file=sys.stderr)
        return 1 if stale or pictures else 0
    PAGES.mkdir(parents=True, exist_ok=True)
    for name in stale:
        _write(PAGES / name, texts.get(name))
    for name in pictures:
        _draw(PICTURES / f"{name}.svg", drawn.get(name))
    return 0


def _write(file: Path, text: str | None) -> None:
    """None: the family is gone."""
    file.unlink() if text is None else file.write_text(text, encoding="utf-8")


def _draw(file: Path, data: object) -> None:
    if data is None:
        file.unlink()
    elif isinstance(data, dict):
        textbook_pictures.draw_gains(data, file)
    else:
        textbook_pictures.draw_roofline(data, file)  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main())
