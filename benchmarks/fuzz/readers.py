"""What is fuzzed: the reader of a baseline and that of a cubin, the errors they may raise, and changes to their files.

It does not fuzz: ``fuzz.process`` does.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import hostile_files

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.records import decode
from pytest_gpuperf.compile.compile_errors import BadCubin
from pytest_gpuperf.compile.machine_code.binary import profile_of
from pytest_gpuperf.compile.machine_code.cubin import read_cubin

_TARGET = re.compile(rb'"target": *"(sm_[0-9]+|[a-z0-9-]+)"')


class Reader(NamedTuple):
    """What is fuzzed."""

    read: Callable[[bytes], None]
    documented: tuple[type[Exception], ...]
    """What it may raise."""
    change: Callable[[bytes, random.Random], bytes]
    """Changes a file as only who knows the format can."""


def read_baseline(content: bytes) -> None:
    """The manifest, or an evidence file in the folder that it claims to be of."""
    if b'"gpu_models"' in content:
        manifest.decoded(content, Path("manifest.json"))
        return
    target = _TARGET.search(content)
    decode(content, "file.jsonl", target[1].decode() if target else "sm_90", "test_file.py")


def read_machine_code(content: bytes) -> None:
    """All that is read of a cubin before it is loaded."""
    cubin = read_cubin(content)
    for kernel in itertools.islice(cubin.kernels.values(), 4):
        profile_of(cubin, kernel)


def change_baseline(content: bytes, chance: random.Random) -> bytes:
    """Edit a place of a line, if it is JSON; else its text."""
    if chance.random() < 0.7:
        with contextlib.suppress(
            ValueError, RecursionError, OverflowError
        ):  # of what is nested deeply already, or no JSON
            return hostile_files.edit_a_line(content, chance)
    text = bytearray(content or b"{}")
    chance.choice((hostile_files.put_a_token, hostile_files.repeat_a_key, hostile_files.move_bytes))(text, chance)
    return bytes(text)


def change_cubin(content: bytes, chance: random.Random) -> bytes:
    """Edit a header, a section, a symbol, a name, an attribute or a relocation."""
    changed = bytearray(content)
    if changed:
        chance.choice(hostile_files.CUBIN_CHANGES)(changed, chance)
    return bytes(changed)


READERS = {
    "baselines": Reader(read_baseline, (BaselineError,), change_baseline),
    "cubins": Reader(read_machine_code, (BadCubin,), change_cubin),
}
