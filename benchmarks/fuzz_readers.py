"""Mutated baselines, cubins, built files and names through their readers: no crash, no long wait, little memory.

    python benchmarks/fuzz_readers.py > docs/results/hostile_files.md

Takes committed baselines and cubins, changes copies of them at random places, and reads these as a gated run does;
wheels and fat binaries as ``gpuperf audit`` does.  Names go into an HTML page and a Markdown report.  Exit status 1 if
an input raises an undocumented error, takes more than ``MOST_S`` of processor time, or more than ``MOST_MB``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import re
import resource
import struct
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from markdown_it import MarkdownIt

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from fat_binaries import fat_binary

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.cubin_store import MAX_CUBIN_BYTES, stored_cubins
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

MOST_S, MOST_MB, SAMPLES = 2.0, 256, 24
TABLES = (SYMTAB, REL, 3, 0x70000000)  # 3: strings; the last: attributes
NUMBERS = (0, 1, 2, 0x7F, 0xFF, 0xFF00, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 8)
TEXT_OR_FIGURE = re.compile(rb'"[^"\n]*"|[-+.\w]+')
TARGET = re.compile(rb'"target": *"([a-z0-9_-]+)"')
TOKENS = (
    b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b'"\\ud800"', b'"\\ud800":', b"[" * 5000, b'{"a":' * 5000, b"\0",
    b"\n<<<<<<<\n", b",,", b"\xff\xfe", b'"' + b"\xf0\x9f\x98\x80" * 999 + b'"', b"\\", b"[]," * 4000, b"null",
    b"[]", b"{}", b"-1", b"true", b'""', b"10e400", b"5e-324", b'"../../x"', b"[" * 99 + b"]" * 99, b'"\\u001b[2J"',
)  # fmt: skip
MARKUP = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</script>", "'\"><b>", "<!-- ", "-->", "<![CDATA[",
    "{{ 7 * 7 }}", "`", "\\", "\u202egnp.exe", "\x00", "\x1b[31m", "a" * 300, "</td></table>", "&lt;script&gt;", "|",
    "<iframe src=//x>", "</title>", "\n\n# b", "::error::x", "[x](https://example.com)", "***",
)  # fmt: skip
PAGE = f"""\
# Hostile files and names

Made by `python benchmarks/fuzz_readers.py`. A file is *read*, or *refused* with a documented error. It *fails* with
any other error, after {MOST_S:g} s of processor time, or with {MOST_MB} MB of memory. Large files are as large as the
limits allow: {MAX_CUBIN_BYTES >> 20} MiB for a cubin, {MAX_FILE_BYTES >> 20} MiB for baselines. A name must be text.

| inputs | number | refused | read | failed | slowest, s | most memory, MB |
|---|---|---|---|---|---|---|"""


def change_bytes(content: bytearray, chance: random.Random) -> None:
    """Flip bits, cut the end off, repeat a piece elsewhere, or put a token of JSON somewhere."""
    way, start, to = chance.randrange(4), *(chance.randrange(len(content) + 1) for _ in range(2))
    if way == 0 and content:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif way == 1:
        del content[start:]
    elif way == 2:
        content[to:to] = content[start : start + chance.randrange(4096)]
    else:
        content[start : start + chance.choice((0, 0, 1, 8))] = chance.choice(TOKENS)


def sections(content: bytes | bytearray) -> list[tuple[int, int, int, int]]:
    """Place of the header, type, offset and size of each ELF section; of a bad table none."""
    with contextlib.suppress(struct.error, OverflowError):
        start, count = struct.unpack_from("<40xQ12xH", content)
        return [(at, *struct.unpack_from("<I16xQQ", content, at + 4)) for at in range(start, start + 64 * count, 64)]
    return []


def change_cubin(content: bytearray, chance: random.Random) -> None:
    """Change bytes, make two sections one, or put an odd number into the ELF header, a section's header or a table."""
    way, width, known = chance.randrange(5), chance.choice((1, 2, 4, 8)), sections(content) or [(0, 0, 0, 0)]
    (one, *_), (other, *_) = chance.choice(known), chance.choice(known)
    tables = [part[2:] for part in known if part[1] in TABLES and part[2] < len(content)] or [(0, 64)]
    if way == 0:
        change_bytes(content, chance)
    elif way == 1:
        content[one + 24 : one + 40] = content[other + 24 : other + 40].ljust(16, b"\0")
    else:
        start, length = ((16, 48), (one, 64), chance.choice(tables))[way - 2]
        at = start + chance.randrange(min(length, len(content)) // width + 1) * width
        value = chance.choice((*NUMBERS, len(content))) + chance.choice((-1, 0, 0, 1))
        content[at : at + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")


def change_baseline(content: bytearray, chance: random.Random) -> None:
    """Delete, repeat or replace one value or key, or change bytes."""
    places = list(TEXT_OR_FIGURE.finditer(content))
    if not places or chance.random() < 0.2:
        change_bytes(content, chance)
    else:
        start, end = chance.choice(places).span()
        content[start:end] = chance.choice((content[start:end] * 2, *TOKENS))


def mutated(samples: Sequence[bytes], change: Callable[..., None], chance: random.Random) -> bytes:
    content = bytearray(chance.choice(samples))
    for _ in range(chance.choice((1, 1, 2, 4))):
        change(content, chance)
    return bytes(content)


def audited(samples: Sequence[bytes], chance: random.Random) -> bytes:
    """A changed fat binary of two cubins; half of them in a wheel, which is changed too."""
    content = bytearray(fat_binary((read_cubin(one).arch, one) for one in chance.sample(samples, 2)))
    change_cubin(content, chance)
    if chance.random() < 0.5:
        with zipfile.ZipFile(buffer := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("p/_C.so", bytes(content))
        return mutated([buffer.getvalue()], change_bytes, chance)
    return bytes(content)


def named(chance: random.Random) -> bytes:
    odd = map(chr, chance.choices(range(0xD800), k=4))
    return "".join([*odd, *(one[chance.choice((0, 0, 2)) :] for one in chance.choices(MARKUP, k=3))]).encode()


def grown_cubins(cubins: Sequence[bytes]) -> Iterable[bytes]:
    """As large as may be, by one of their tables many times over."""
    for cubin in cubins[:: len(cubins) // 4]:
        for at, kind, offset, size in sections(cubin):
            if kind in TABLES and size:
                more = cubin[offset : offset + size] * ((MAX_CUBIN_BYTES - len(cubin)) // size)
                yield cubin[: at + 24] + struct.pack("<QQ", len(cubin), len(more)) + cubin[at + 40 :] + more


def grown_baselines(sample: bytes) -> Iterable[bytes]:
    """Files as large as may be: deep, of many values, of many lines, of one text."""
    head, _, records = sample.partition(b"\n")
    for piece in (b"[", b"[],", b'{"a":1},', b"\n", b"{}\n", records, b'{"test":"', b'"test":"a",'):
        yield (head + b"\n" + piece * (MAX_FILE_BYTES // len(piece)))[:MAX_FILE_BYTES]
    yield (head + b'\n{"test":"' + b"a" * MAX_FILE_BYTES)[: MAX_FILE_BYTES - 2] + b'"}'


def read_baseline(content: bytes) -> None:
    target = TARGET.search(content)
    if b'"gpu_models"' in content:
        manifest.decoded(content, Path(manifest.FILE))
    else:
        decode(content, "file.jsonl", target[1].decode() if target else "sm_90", "test_file.py")


def read_machine_code(content: bytes) -> None:
    cubin = read_cubin(content)
    for kernel in list(cubin.kernels.values())[:4]:
        profile_of(cubin, kernel)


def read_audited(content: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="gpuperf-fuzz-") as name:
        path = Path(name, "p-1.0-cp312-cp312-linux_x86_64.whl" if content[:2] == b"PK" else "k.fatbin")
        path.write_bytes(content)
        read_built(path, Path(tempfile.mkdtemp(dir=name)))


def marks(name: str) -> list[Counter[str]]:
    """Tags and quotes in the page and in the Markdown of a red run in which everything has this name."""
    key = Key(f"test_{name}.py", f"test[{name}]", name)
    figures = TimeFigures(ratio=1.5, interval=(1.4, 1.6), before_ns=1e3, after_ns=1.5e3)
    judged = Judgement(key=key, target=name, kind="time", verdict=Verdict.SLOWER, reason=name, time=figures)
    test = TestEvidence(key.module, key.test, workloads=(WorkloadEvidence(key=key, judgements=(judged,)),))
    document = document_of(RunReport(SCHEMA, date="", plugin="", task=name, exit_status=1, verdicts={}, branch=name,
                                     problems=(name,), warnings=(name,), machines=(name,), tests=(test,)))  # fmt: skip
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table").render(as_markdown(document))
    return [Counter(re.findall(r"<[A-Za-z/!?][^\s>]*", text)) for text in (as_page(document), markdown)]


def read_name(content: bytes) -> None:
    assert marks(content.decode()) == marks("plain"), f"{content.decode()!r} is markup"


def read_all(name: str, inputs: Iterable[bytes], read: Callable[[bytes], None]) -> list[str]:
    """Print a row of the table; the failures."""
    outcomes, failures, slowest_s, most_mb = Counter[str](), [], 0.0, 0.0
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number, content in enumerate(inputs):
        outcome, began = "read", time.process_time()
        try:
            read(content)
        except (BaselineError, BadCubin):
            outcome = "refused"
        except Exception as error:  # noqa: BLE001 any other error is what is looked for
            outcome = f"{type(error).__name__}: {error}"[:200]
        took_s = time.process_time() - began
        most_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1024
        if outcome not in ("read", "refused") or took_s > MOST_S or most_mb > MOST_MB:
            failures.append(f"{name} {number}: {outcome}, {took_s:.2f} s, {most_mb:.0f} MB")
        outcomes[outcome], slowest_s = outcomes[outcome] + 1, max(slowest_s, took_s)
    counts = f"{outcomes.total():,} | {outcomes['refused']:,} | {outcomes['read']:,} | {len(failures)}"
    print(f"| {name} | {counts} | {slowest_s:.2f} | {most_mb:.0f} |", flush=True)
    return failures


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0, help="of the usual numbers of inputs")
    share = parser.parse_args(arguments).share
    chance, folder = random.Random(1), Path(__file__).resolve().parents[1] / "baselines"
    files = [folder / manifest.FILE, *folder.glob("*/**/*.jsonl")]
    baselines = sorted((path.read_bytes() for path in files), key=len)[:SAMPLES]
    stored = sorted(map(BaselineStore(folder).cubin, stored_cubins(folder).values()), key=len)
    cubins = stored[:: len(stored) // SAMPLES]
    counts, failures = (range(round(share * count)) for count in (20_000, 10_000, 200, 500)), list[str]()
    print(PAGE, flush=True)
    for row in (
        ("large baselines", grown_baselines(baselines[-1]), read_baseline),
        ("large cubins", grown_cubins(cubins), read_machine_code),
        ("mutated baselines", (mutated(baselines, change_baseline, chance) for _ in next(counts)), read_baseline),
        ("mutated cubins", (mutated(cubins, change_cubin, chance) for _ in next(counts)), read_machine_code),
        ("mutated audited files", (audited(cubins, chance) for _ in next(counts)), read_audited),
        ("mutated names", (named(chance) for _ in next(counts)), read_name),
    ):
        failures += read_all(*row)
    print(*failures[:40], sep="\n", file=sys.stderr)
    return int(bool(failures))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (3600, 3600))  # a hang ends
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    sys.exit(main())
