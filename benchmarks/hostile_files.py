"""Mutated cubins, baselines, built files and names through their readers: no crash, no long wait, little memory.

    python benchmarks/hostile_files.py [--cubins 30000] [--baselines 40000] [--built 200] [--names 500] [--output PAGE]

Takes the committed baselines and their cubins, changes each copy at random places, and reads it as a gated run does:
cubins with the code hash of their kernels.  Files that are built to cost much, just below the size limits, are read
too.  Built files are wheels and fat binaries for ``gpuperf audit``; names go into an HTML page and a Markdown report,
in which they must be text and nothing else.  Children with a bound on their memory do the reading.  Exit status 1 if
one raised anything but the documented errors, took more than a second of processor time (on a slow or busy machine as
much more as a piece of other work takes), or more than 200 MB.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import copy
import functools
import io
import itertools
import json
import multiprocessing
import random
import resource
import struct
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from yardstick import slowness

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fat_binaries import fat_binary

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.cubin_store import MAX_CUBIN_BYTES, stored_cubins
from pytest_gpuperf.baselines.layout import is_arch
from pytest_gpuperf.baselines.records import MAX_FILE_BYTES, decode
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.compile_errors import BadCubin
from pytest_gpuperf.compile.machine_code.audited import read_built
from pytest_gpuperf.compile.machine_code.binary import profile_of
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.elf import REL, SYMTAB
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, TimeFigures, Verdict
from pytest_gpuperf.report.document import SCHEMA, RunReport, document_of
from pytest_gpuperf.report.markdown import as_markdown
from pytest_gpuperf.report.render import as_page

HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "'\"><b>",
    "<!-- ", "-->", "<![CDATA[", "]]>", "javascript:alert(1)", "{{ 7 * 7 }}", "{% raw %}", "${alert(1)}", "`", "\\",
    "\u202egnp.exe", "\u2028", "\x00", "\x1b[31m", "a" * 300, "</pre>", "</td></tr></table>", "&lt;script&gt;",
    "&#x3c;", "<svg onload=alert(1)>", "<a href='javascript:alert(1)'>", "<style>*{display:none}</style>",
    "<base href=//x>", "<meta http-equiv=refresh content=0>", "<iframe src=//x>", "%00", "../../etc", "=1+1",
    "</title>",
]  # fmt: skip
ROOT = Path(__file__).resolve().parents[1]
BASELINES = ROOT / "baselines"
MOST_S, MOST_MB = 1.0, 200
CHUNK = 1000
"""Files that one child reads."""
SAMPLES = 24
"""Files of each kind that are mutated."""
_SECTION, _SYMBOL = 64, 24
_WHOLE = 1 << 16
"""Bytes of a section that is all that there is."""


class Hostile(NamedTuple):
    """One file."""

    name: str
    content: bytes
    target: str = ""
    """Of a baseline; ``manifest`` for that, ``built`` or ``name`` for those."""


class Found(NamedTuple):
    """What reading one chunk of files came to."""

    outcomes: Counter[str]
    """How often they were read, refused, or what else was raised."""
    slowest: tuple[float, str]
    """Seconds of processor time, and the name of the file."""
    peak_mb: float
    """Most memory of the child, less what it had before."""
    failures: tuple[str, ...]


# --- cubins --------------------------------------------------------------------------------------


@functools.cache
def sample_cubins() -> tuple[Hostile, ...]:
    """Small committed cubins of all architectures."""
    store = BaselineStore(BASELINES)
    contents = {store.cubin(sha256) for sha256 in stored_cubins(BASELINES).values()}
    by_size = sorted(contents, key=lambda one: (len(one), one))
    return tuple(Hostile(read_cubin(one).arch, one) for one in by_size[:: len(by_size) // SAMPLES])


def mutated_cubins(count: int, seed: int) -> Iterator[Hostile]:
    """So many of them, the same for the same seed."""
    chance = random.Random(seed)
    for number in range(count):
        sample = chance.choice(sample_cubins())
        change = chance.choice(CUBIN_CHANGES)
        content = bytearray(sample.content)
        for _ in range(chance.choice((1, 1, 2, 4))):
            change(content, chance)
        yield sample._replace(name=f"{change.__name__} {number}", content=bytes(content[:MAX_CUBIN_BYTES]))


def _odd(chance: random.Random, size: int) -> int:
    """A number that readers trip over."""
    near = chance.choice((0, 1, 2, 0x7F, 0xFF, 0xFF00, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1, size))
    return max(0, near + chance.choice((-8, -1, 0, 0, 0, 1, 8)))


def _put(content: bytearray, at: int, width: int, value: int) -> None:
    if 0 <= at <= len(content) - width:
        content[at : at + width] = (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def flip_bytes(content: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 16)):
        if content:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def truncate(content: bytearray, chance: random.Random) -> None:
    del content[chance.randint(0, len(content)) :]


def move_bytes(content: bytearray, chance: random.Random) -> None:
    start, size, to = (chance.randrange(len(content) + 1) for _ in range(3))
    content[to:to] = content[start : start + size]


def edit_header(content: bytearray, chance: random.Random) -> None:
    at, width = chance.choice(
        ((16, 2), (18, 2), (24, 8), (32, 8), (40, 8), (48, 4), (54, 2), (56, 2), (58, 2), (60, 2), (62, 2))
    )
    _put(content, at, width, _odd(chance, len(content)))


def edit_section(content: bytearray, chance: random.Random) -> None:
    at, width = chance.choice(((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8)))
    _put(content, _some_section(content, chance) + at, width, _odd(chance, len(content)))


def overlap_sections(content: bytearray, chance: random.Random) -> None:
    one, other = _some_section(content, chance), _some_section(content, chance)
    content[one + 24 : one + 40] = content[other + 24 : other + 40].ljust(16, b"\0")


def share_a_section_header(content: bytearray, chance: random.Random) -> None:
    one, other = _some_section(content, chance), _some_section(content, chance)
    content[one : one + _SECTION] = content[other : other + _SECTION].ljust(_SECTION, b"\0")


def edit_symbol(content: bytearray, chance: random.Random) -> None:
    at, width = chance.choice(((0, 4), (4, 1), (5, 1), (6, 2), (8, 8), (16, 8)))
    start, size = _table(content, SYMTAB)
    _put(content, start + chance.randrange(size // _SYMBOL + 1) * _SYMBOL + at, width, _odd(chance, len(content)))


def edit_strings(content: bytearray, chance: random.Random) -> None:
    """Names without ends, and of other bytes."""
    start, size = _table(content, 3)
    piece = slice(start + chance.randrange(size + 1), start + size)
    if chance.random() < 0.5:
        content[piece] = content[piece].replace(b"\0", b"A")
    else:
        content[piece] = bytes(chance.randrange(256) for _ in content[piece])


def edit_attributes(content: bytearray, chance: random.Random) -> None:
    start, size = _table(content, 0x70000000)
    _put(content, start + chance.randrange(size + 1), chance.choice((1, 2, 4)), _odd(chance, len(content)))


def edit_relocations(content: bytearray, chance: random.Random) -> None:
    start, size = _table(content, REL)
    _put(content, start + chance.randrange(size // 8 + 1) * 8, chance.choice((4, 8)), _odd(chance, len(content)))


CUBIN_CHANGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    flip_bytes, truncate, move_bytes, edit_header, edit_section, overlap_sections, share_a_section_header, edit_symbol,
    edit_strings, edit_attributes, edit_relocations,
)  # fmt: skip


def _sections(content: bytes | bytearray) -> list[tuple[int, int, int, int]]:
    """Place of the header, type, offset and size of each section that the file still has."""
    found = []
    with contextlib.suppress(struct.error, OverflowError):
        (table,), (count,) = struct.unpack_from("<Q", content, 40), struct.unpack_from("<H", content, 60)
        for at in range(table, table + count * _SECTION, _SECTION):
            (kind,), (offset, size) = (
                struct.unpack_from("<I", content, at + 4),
                struct.unpack_from("<QQ", content, at + 24),
            )
            found.append((at, kind, offset, size))
    return found


def _some_section(content: bytearray, chance: random.Random) -> int:
    return chance.choice(_sections(content) or [(0, 0, 0, 0)])[0]


def _table(content: bytearray, kind: int) -> tuple[int, int]:
    """Offset and size of a section of this type, within the file."""
    found = [(offset, size) for _, type_, offset, size in _sections(content) if type_ == kind and offset < len(content)]
    offset, size = found[-1] if found else (0, 0)
    return offset, min(size, len(content) - offset)


def read_as_cubin(file: Hostile) -> None:
    """All that is read of a cubin before it is loaded."""
    cubin = read_cubin(file.content)
    for kernel in itertools.islice(cubin.kernels.values(), 4):
        profile_of(cubin, kernel)


# --- cubins that are built to cost much ----------------------------------------------------------


def built_cubins(size: int = MAX_CUBIN_BYTES) -> Iterator[Hostile]:
    """Of about ``size`` bytes each."""
    room = size - 4096
    few, quarter, kernels = (".text.k", 1, bytes(1024)), (".text.k", 1, bytes(room // 4)), min(30_000, room // 200)
    kernel = ("k", 1)
    parameters = _records("<BBHIHHI", ((4, 0x17, 12, 0, n & 0xFFFF, 0, 1 << 20) for n in range(room // 16)))
    figures = _records("<BBHII", ((4, 0x2F, 8, n, n) for n in range(room // 12)))
    slots = _records("<QQ", ((n % 4096, (n % 9) << 32 | 2) for n in range(room // 40)))
    for name, sections, symbols in (
        ("sections that are each the whole file", [("a", 1, None)] * min(20_000, room // 150), []),
        ("many sections", [few, *[("b", 1, b"\0")] * min(65_000, room // 80)], [kernel]),
        ("one text", [(".text.k", 1, bytes(room))], [kernel]),
        ("many symbols of one name", [few], [kernel, *[("o" * 60_000, 1)] * (room // 30)]),
        ("many functions at one place", [few], [kernel, *[("f", 1)] * (room // 30)]),
        ("many kernels of one name", [few], [kernel] * (room // 30)),
        ("many attributes", [few, (".nv.info.k", 1, b"\1\1\0\0" * (room // 4))], [kernel]),
        ("many parameters", [few, (".nv.info.k", 1, parameters)], [kernel]),
        ("many figures", [few, (".nv.info", 1, figures)], [kernel]),
        (
            "objects that lie in each other",
            [quarter, (".nv.constant3", 1, bytes(room // 4))],
            [kernel, *[("o", 2, 1)] * (room // 60)],
        ),
        (
            "many relocations",
            [quarter, (".nv.constant4", 1, bytes(room // 4)), ("r", REL, slots, 2)],
            [kernel, *[("o", 2, 1)] * 8],
        ),
        (
            "many kernels",
            [(f".text.k{n}", 1, bytes(16)) for n in range(kernels)],
            [(f"k{n}", n + 1) for n in range(kernels)],
        ),
        ("a long name", [(".text." + "k" * room, 1, bytes(16))], []),
    ):
        yield Hostile(f"{name}, {size >> 20} MB", _elf(sections, symbols)[:size])


def _records(layout: str, fields: Iterator[tuple[int, ...]]) -> bytes:
    return b"".join(struct.pack(layout, *one) for one in fields)


def _elf(sections: list[Any], symbols: list[Any]) -> bytes:
    """A cubin for sm_90; a section of None is all that is there, symbols are ``(name, section, is an object)``."""
    strings, places = bytearray(b"\0"), {"": 0}

    def place(name: str) -> int:
        if name not in places:
            places[name] = len(strings)
            strings.extend(name.encode() + b"\0")
        return places[name]

    table = b"".join(
        struct.pack(
            "<IBBHQQ", place(name), 1 if is_object else 2, 0 if is_object or name[0] in "of" else 0x10, where, 0, 4096
        )
        for name, where, *is_object in symbols
    )
    given = [*sections, ("symbols", SYMTAB, table)]
    names = [place(name) for name, *_ in given]
    given.append(("", 3, bytes(strings)))
    body, headers = bytearray(64), [bytes(_SECTION)]
    for name, (_, kind, data, *info) in zip([*names, 0], given, strict=True):
        offset, length = (0, _WHOLE) if data is None else (len(body), len(data))
        body += data or b""
        headers.append(
            struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, length, len(given), info[0] if info else 0, 1, 0)
        )
    body += bytes(max(0, _WHOLE - len(body)) if any(one[2] is None for one in given) else 0)
    struct.pack_into("<16sHHIQQQIHHHHHH", body, 0, b"\x7fELF\2\1\1\x33\7", 2, 190, 1, 0, 0, len(body), 90, 64, 56, 0,
                     _SECTION, len(headers) & 0xFFFF, len(headers) - 1 & 0xFFFF)  # fmt: skip
    return bytes(body) + b"".join(headers)


# --- baselines -----------------------------------------------------------------------------------


@functools.cache
def sample_baselines() -> tuple[Hostile, ...]:
    """Small committed files of each kind, and the manifest."""
    files = sorted(BASELINES.glob("*/**/*.jsonl"), key=lambda path: (path.stat().st_size, path))
    found = []
    for is_static in (True, False):
        kind = [path for path in files if is_arch(path.relative_to(BASELINES).parts[0]) == is_static]
        for path in kind[: SAMPLES // 2]:
            found.append(Hostile(path.stem, path.read_bytes(), path.relative_to(BASELINES).parts[0]))
    return (*found, Hostile("manifest", (BASELINES / manifest.FILE).read_bytes(), "manifest"))


def mutated_baselines(count: int, seed: int) -> Iterator[Hostile]:
    """So many of them, the same for the same seed."""
    chance = random.Random(seed)
    for number in range(count):
        sample = chance.choice(sample_baselines())
        if chance.random() < 0.4:
            content = bytearray(sample.content)
            change = chance.choice((flip_bytes, truncate, move_bytes, put_a_token, repeat_a_key))
            change(content, chance)
            yield sample._replace(name=f"{change.__name__} {number}", content=bytes(content))
        else:
            content = sample.content
            for _ in range(chance.choice((1, 1, 2, 5))):
                content = edit_a_line(content, chance)
            yield sample._replace(name=f"edit_a_line {number}", content=content)


def edit_a_line(content: bytes, chance: random.Random) -> bytes:
    """Change one place of one of its lines, which are JSON; a manifest is one line.  Raises ``ValueError``."""
    lines = [content] if content.startswith(b"{\n") else content.split(b"\n")
    at = chance.choice([number for number, line in enumerate(lines) if line.strip()] or [0])
    tree = json.loads(lines[at])
    if isinstance(tree, (dict, list)) and tree:
        edit_tree(tree, chance)
    lines[at] = json.dumps(tree, ensure_ascii=chance.random() < 0.5).encode("utf-8", "replace")
    return b"\n".join(lines)


TOKENS = (
    b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"-" + b"9" * 30, b"0.1e-400", b'"\\ud800"', b'"\\udfff\\ud800"',
    b"[" * 5000, b'{"a":' * 5000, b"]" * 40, b"\0", b"\xff\xfe", b"\xed\xa0\x80", b'"\\u0000"', b"\n<<<<<<< HEAD\n",
    b",,", b"true", b"null", b'"' + b"\xf0\x9f\x98\x80" * 999 + b'"', b"\\", b"[]," * 4000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, -(2**63) - 1, 10**400, 1e308, 5e-324, -0.0, float("inf"), float("nan"), "", "\ud800",
    "a\udfffb", "\x1b[2J", "\u202e", "x" * 10_000, "0" * 64, "../../x", [], {}, [[]] * 50, {"\ud800": 1}, 10**18,
)  # fmt: skip


def put_a_token(content: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(content) + 1)
    content[at : at + chance.choice((0, 0, 1, 8))] = chance.choice(TOKENS)


def repeat_a_key(content: bytearray, chance: random.Random) -> None:
    """One that is there, or one of a lone surrogate, twice."""
    at = chance.randrange(len(content))
    start = content.find(b'"', at)
    end = content.find(b"\n", start)
    line = bytes(content[start:end]).rstrip(b", \n")
    content[start:start] = chance.choice((line + b",", b'"\\ud800":1,"\\ud800":1,'))


def edit_tree(tree: Any, chance: random.Random) -> None:
    """Change one place of it."""
    place = tree
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = chance.choice(keys)
        if not isinstance(place[key], (dict, list)) or not place[key] or chance.random() < 0.1:
            break
        place = place[key]
    way = chance.randrange(6)
    if way == 0:
        del place[key]
    elif way == 1 and isinstance(place, dict):
        place[chance.choice(("\ud800", "", "x", "schema", "a\x00", "k" * 5000, "$"))] = place.pop(key)
    elif way == 2:
        place[key] = _deep(chance.choice((2, 50, 150)), place[key])
    elif way == 3 and isinstance(place, list):
        place.extend([place[key]] * chance.choice((1, 5, 300)))
    elif way == 4 and isinstance(place[key], float):
        place[key] *= chance.choice((-1, 0, 1e9, 1e300, 1e-300))
    else:
        place[key] = copy.deepcopy(chance.choice(VALUES))


def _deep(levels: int, inside: Any) -> Any:
    for level in range(levels):
        inside = [inside] if level % 2 else {"a": inside}
    return inside


def built_baselines(size: int = MAX_FILE_BYTES) -> Iterator[Hostile]:
    """Of about ``size`` bytes each, and manifests as large as they may be."""
    head = b'{"schema":7,"target":"sm_90"}\n'
    record = next(line for line in sample_baselines()[0].content.split(b"\n") if b'"record"' in line)
    before, _, after = record.partition(b'"opcodes":{')
    least = record.replace(after[: after.index(b"}")], b"")
    for name, content in (
        ("lists", b"[]," * (size // 3)),
        ("objects", b'{"a":1},' * (size // 8)),
        ("opcodes", before + b'"opcodes":{' + b",".join(b'"%x":0' % n for n in range(size // 14)) + after),
        (
            "as many opcodes as may be",
            before + b'"opcodes":{' + b",".join(b'"%x":0' % n for n in range(590_000)) + after,
        ),
        ("fields", b'{"test":"a",' + b'"test":"a",' * (size // 12 - 10)),
        (
            "records",
            b"\n".join(least.replace(b'"test":"', b'"test":"%x' % n, 1) for n in range(size // (len(least) + 9))),
        ),
        ("empty lines", b"\n" * (size - 100)),
        ("short lines", b"{}\n" * (size // 3 - 100)),
        ("nested", b"[" * (size - 100)),
        ("one text", b'{"test":"' + b"a" * (size - 100) + b'\xf0\x9f\x98\x80"}'),
        ("escapes", b'{"test":"' + b'\\"' * (size // 2 - 100) + b'"}'),
    ):
        yield Hostile(f"{name}, {size >> 20} MB", (head + content)[:size], "sm_90")
    most = manifest.MAX_BYTES
    for name, content in (
        ("names", b'{"schema":1,"gpu_models":[],"architectures":[' + b'"sm_90",' * (most // 8 - 10) + b'"sm_90"]}'),
        ("nested", b'{"schema":1,"a":' + b"[" * (most - 100)),
        ("nested and closed", b'{"schema":1,"a":' + b"[" * (most // 3) + b"]" * (most // 3) + b"}"),
        ("surrogates", b'{"schema":1,"architectures":[],"gpu_models":["' + b"\\ud800" * (most // 7) + b'"]}'),
    ):
        yield Hostile(f"manifest of {name}, 1 MB", content[:most], "manifest")


def read_as_baseline(file: Hostile) -> None:
    """As the store reads it."""
    if file.target != "manifest":
        decode(file.content, "file.jsonl", file.target, "test_file.py")
        return
    with tempfile.TemporaryDirectory(prefix="gpuperf-hostile-") as name:
        Path(name, manifest.FILE).write_bytes(file.content)
        BaselineStore(Path(name)).manifest()


# --- built files and names -----------------------------------------------------------------------


def mutated_built(count: int, seed: int) -> Iterator[Hostile]:
    """Fat binaries of committed cubins, half of them in a wheel."""
    chance = random.Random(seed)
    for number in range(count):
        cubins = chance.sample(sample_cubins(), 2)
        content = bytearray(fat_binary((one.name, one.content) for one in cubins))
        change = chance.choice((*CUBIN_CHANGES, flip_bytes, truncate, move_bytes))
        packed = chance.random() < 0.5
        if packed and chance.random() < 0.5:
            content = bytearray(_wheel_of(bytes(content)))
            change(content, chance)
        else:
            change(content, chance)
            content = bytearray(_wheel_of(bytes(content))) if packed else content
        yield Hostile(f"{change.__name__} {number}", bytes(content), "built")


def _wheel_of(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("p/_C.so", content)
    return buffer.getvalue()


def read_as_built(file: Hostile) -> None:
    """As ``gpuperf audit`` reads it."""
    with tempfile.TemporaryDirectory(prefix="gpuperf-hostile-") as name:
        path = Path(name, "p-1.0-cp312-cp312-linux_x86_64.whl" if file.content[:2] == b"PK" else "k.fatbin")
        path.write_bytes(file.content)
        folder = Path(name, "parts")
        folder.mkdir()
        read_built(path, folder)


PIECES = (
    *HOSTILE,
    "|",
    "\n\n# b",
    "@everyone",
    "::error::x",
    "##vso[task.complete]",
    "[x](https://example.com)",
    "***",
)


def mutated_names(count: int, seed: int) -> Iterator[Hostile]:
    """Pieces of markup and of commands, cut and joined, among any characters."""
    chance = random.Random(seed)
    for number in range(count):
        pieces = [chance.choice(PIECES) for _ in range(chance.randint(1, 4))]
        pieces = [one[chance.randrange(len(one)) :] if chance.random() < 0.3 else one for one in pieces]
        pieces.insert(chance.randrange(len(pieces)), "".join(chr(chance.randrange(0xD800)) for _ in range(4)))
        yield Hostile(f"name {number}", "".join(pieces).encode(), "name")


class _Tags(HTMLParser):
    """Counts of elements and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.update([tag, *(f"{tag} {name}" for name, _ in attrs)])


def tags_of(name: str) -> tuple[Counter[str], Counter[str]]:
    """Those of the page and of the Markdown of a red run in which everything has this name."""
    key = Key(f"test_{name}.py", f"test[{name}]", name)
    figures = TimeFigures(ratio=1.5, interval=(1.4, 1.6), before_ns=1e3, after_ns=1.5e3)
    judged = Judgement(key=key, target=name, kind="time", verdict=Verdict.SLOWER, reason=f"a {name}", time=figures)
    test = TestEvidence(key.module, key.test, workloads=(WorkloadEvidence(key=key, judgements=(judged,)),))
    document = document_of(RunReport(
        schema=SCHEMA, date="", plugin="", task=f"gating {name}", exit_status=1, verdicts={}, problems=(f"a {name}",),
        warnings=(f"a {name}",), tests=(test,), machines=(f"a {name}",), branch=f"b{name}",
    ))  # fmt: skip
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table").render(as_markdown(document))
    return _Tags(as_page(document)).seen, _Tags(markdown).seen


def read_as_name(file: Hostile) -> None:
    """Raises ``ValueError`` where the name makes an element or an attribute that no plain name makes."""
    if tags_of(file.content.decode()) != tags_of("plain"):
        raise ValueError(f"{file.content.decode()!r} is markup")


# --- reading -------------------------------------------------------------------------------------


def outcome_of(file: Hostile) -> str:
    """``read``, ``refused``, or the error that must not be."""
    try:
        others = {"built": read_as_built, "name": read_as_name, "": read_as_cubin}
        others.get(file.target, read_as_baseline)(file)
    except (BaselineError, BadCubin):
        return "refused"
    except Exception as error:  # noqa: BLE001 what it is said to be is what is looked for
        return f"{type(error).__name__}: {error}"[:200]
    return "read"


def read_all(files: Iterator[Hostile]) -> Found:
    """Read them here, one after the other."""
    outcomes: Counter[str] = Counter()
    failures, slowest = [], (0.0, "")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak is that from now on
    before_kb = _peak_kb()
    for file in files:
        began = time.process_time()
        outcome = outcome_of(file)
        seconds = time.process_time() - began
        slowest = max(slowest, (seconds, file.name))
        outcomes[outcome if outcome in ("read", "refused") else "failed"] += 1
        if outcome not in ("read", "refused"):
            failures.append(f"{file.name}: {outcome}")
        elif seconds > MOST_S and seconds > MOST_S * slowness():
            failures.append(f"{file.name}: {seconds:.2f} s")
    return Found(outcomes, slowest, (_peak_kb() - before_kb) / 1024, tuple(failures))


def _peak_kb() -> int:
    """Most memory that this process has had."""
    (line,) = (one for one in Path("/proc/self/status").read_text(encoding="ascii").splitlines() if "VmHWM" in one)
    return int(line.split()[1])


_CPU_S, _MOST_BYTES = 600, 4 << 30
"""Bounds of a child, so that a hang ends; memory is measured, this is where the machine would suffer."""


def in_child(read: Callable[[], Iterator[Hostile]], start: str = "fork") -> Found:
    """The same in a process of its own, which may die of it.

    One that is forked has the samples, one that is spawned no memory that was freed and shows in no peak.
    """
    context = multiprocessing.get_context(start)
    with concurrent.futures.ProcessPoolExecutor(1, context, _bounded) as pool:
        try:
            return pool.submit(_read_all, read).result()
        except concurrent.futures.process.BrokenProcessPool:
            return Found(Counter(failed=1), (0.0, ""), 0.0, (f"a process died of one of {read}"[:200],))


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))


def _read_all(read: Callable[[], Iterator[Hostile]]) -> Found:
    return read_all(read())


def chunks(make: Callable[[int, int], Iterator[Hostile]], count: int, seed: int) -> Iterator[Found]:
    """Of ``count`` files, ``CHUNK`` for each child, each chunk with a seed of its own."""
    for number, start in enumerate(range(0, count, CHUNK)):
        yield in_child(functools.partial(make, min(CHUNK, count - start), seed * 1_000_000 + number))


def one_by_one(files: Iterator[Hostile]) -> Iterator[Found]:
    """A child for each, so that the memory of each is known."""
    for file in files:
        found = in_child(functools.partial(iter, [file]), "spawn")
        print(f"{file.name}: {found.slowest[0]:.2f} s, {found.peak_mb:.0f} MB", file=sys.stderr)
        yield found


def together(found: Iterator[Found]) -> Found:
    """The worst of several."""
    every = list(found)
    failures = [failure for one in every for failure in one.failures]
    failures += [f"{one.slowest[1]}: {one.peak_mb:.0f} MB" for one in every if one.peak_mb > MOST_MB]
    return Found(
        sum((one.outcomes for one in every), Counter()), max(one.slowest for one in every),
        max(one.peak_mb for one in every), tuple(failures),
    )  # fmt: skip


def page(command: str, rows: list[tuple[str, Found]]) -> str:
    """What was found, as Markdown."""
    lines = [
        f"| {what} | {sum(one.outcomes.values()):,} | {one.outcomes['refused']:,} | {one.outcomes['read']:,} | "
        f"{len(one.failures)} | {one.slowest[0]:.2f} ({one.slowest[1]}) | {one.peak_mb:.0f} |"
        for what, one in rows
    ]
    sizes = sorted(len(BaselineStore(BASELINES).cubin(sha256)) for sha256 in stored_cubins(BASELINES).values())
    largest = max(path.stat().st_size for path in BASELINES.rglob("*.jsonl"))
    return "\n".join([
        "# Hostile files and names", "",
        f"By `{command}`. A file is",
        "*refused* with a documented error, or *read*. It *fails* if anything else is raised, if it takes more than",
        f"{MOST_S:g} s of processor time, or more than {MOST_MB} MB beyond what the process had. Mutated files are",
        "copies of committed ones with changed bytes, headers, sections, symbols, strings, values and keys. Built",
        "files are just below the size limit, in the shapes that cost readers most: things that lie in each other,",
        "many small things, long names, deep nesting. Wheels and fat binaries are for `gpuperf audit`; the time that",
        "cuobjdump takes is not counted. A name that is *read* is text in the page and in the comment, and no markup.",
        "",
        "| files | number | refused | read | failed | slowest, s (which) | peak, MB |", "|---|---|---|---|---|---|---|",
        *lines, "",
        f"Limits: {MAX_CUBIN_BYTES >> 20} MiB for a cubin, {MAX_FILE_BYTES >> 20} MiB for a file of baselines.",
        f"The largest of the {len(sizes)} committed cubins has {sizes[-1]:,} bytes (half have",
        f"{sizes[len(sizes) // 2]:,} or less), the largest committed file of baselines {largest:,}.", "",
    ])  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cubins", type=int, default=30_000)
    parser.add_argument("--baselines", type=int, default=40_000)
    parser.add_argument("--built", type=int, default=200)
    parser.add_argument("--names", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    sample_cubins(), sample_baselines()  # here, so that no child has to read them
    rows = [
        ("built cubins", together(one_by_one(built_cubins()))),
        ("built baselines", together(one_by_one(built_baselines()))),
        ("mutated cubins", together(chunks(mutated_cubins, given.cubins, given.seed))),
        ("mutated baselines", together(chunks(mutated_baselines, given.baselines, given.seed))),
        ("mutated wheels and fat binaries", together(chunks(mutated_built, given.built, given.seed))),
        ("mutated names, into a page and a comment", together(chunks(mutated_names, given.names, given.seed))),
    ]
    flags = " ".join(f"--{name} {vars(given)[name]}" for name in ("cubins", "baselines", "built", "names", "seed"))
    text = page(f"python benchmarks/hostile_files.py {flags}", rows)
    print(text)
    failures = [failure for _, one in rows for failure in one.failures]
    print("\n".join(failures[:40]), file=sys.stderr)
    if given.output:
        older = given.output.read_text(encoding="utf-8") if given.output.exists() else ""
        _, heading, sections = older.partition("\n## ")  # by benchmarks/fuzz_readers.py
        given.output.write_text(text + heading + sections, encoding="utf-8")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
