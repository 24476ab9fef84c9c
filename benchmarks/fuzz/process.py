"""One fuzzed process: libFuzzer, by atheris, feeds a reader with changed files and keeps those that reach new code.

    cd benchmarks; python -m fuzz.process baselines SLOWEST [LIBFUZZER_FLAG...] FOUND fuzz/corpus/baselines

``SLOWEST`` is a file that gets the most seconds of processor time that one input took.  Documented errors are what
a hostile file may get; whatever else is raised ends the process as a crash, and libFuzzer keeps the input.
"""

from __future__ import annotations

import contextlib
import random
import sys
import time
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["pytest_gpuperf"]):
    from fuzz.readers import READERS

PLAIN_CHANGES = 0.3
"""Share of the changes that are left to libFuzzer, which knows nothing of the format."""


def main() -> None:
    """Fuzz until libFuzzer has had enough; it ends the process."""
    name, slowest, *flags = sys.argv[1:]
    reader, most_s = READERS[name], 0.0

    def once(content: bytes) -> None:
        nonlocal most_s
        began = time.process_time()
        with contextlib.suppress(*reader.documented):
            reader.read(content)
        took_s = time.process_time() - began
        if took_s > most_s:
            most_s = took_s
            Path(slowest).write_text(f"{took_s:.3f}", encoding="ascii")

    def change(content: bytes, most_bytes: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if chance.random() < PLAIN_CHANGES:
            changed: bytes = atheris.Mutate(content, most_bytes)
        else:
            changed = reader.change(content, chance)
        return changed[:most_bytes]

    atheris.Setup([sys.argv[0], *flags], once, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
