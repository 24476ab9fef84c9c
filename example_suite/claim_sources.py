"""Which test file names a claim, and which kernels that file compiles, read from the files themselves."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path

from claims import load_claims
from outcomes import BadOutcomes

SUITE = Path(__file__).parent


@functools.cache
def _sources() -> Mapping[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(SUITE.glob("test_*.py"))}


@functools.cache
def module_of() -> Mapping[str, str]:
    """The test file that names a claim, by id.  Raises ``BadOutcomes`` if there is none."""
    named = {claim_id: name for name, text in _sources().items() for claim_id in re.findall(r'"([A-Z0-9]+-\d+)"', text)}
    if lacking := sorted(load_claims().keys() - named.keys()):
        raise BadOutcomes(f"no test names {', '.join(lacking)}")
    return named


def kernels_of(module: str) -> set[str]:
    """Files of kernels that a test file names."""
    return {name for name in re.findall(r'"(kernels/[\w/]+\.cu)"', _sources()[module]) if (SUITE / name).is_file()}
