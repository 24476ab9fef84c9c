"""Right lines of the page about lines: they are of pairs, and are there in the kernels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
LEAST = 40


def test_right_lines_are_of_pairs_and_stand_in_the_kernels() -> None:
    pairs = {(pair["family"], pair["optimised"]): pair["cause"] for pair in _read("example_suite/pairs.json")}
    texts = ["\n".join(map(str.strip, file.read_text(encoding="utf-8").splitlines()))
             for file in (ROOT / "example_suite" / "kernels").iterdir()]  # fmt: skip
    truths = _read("benchmarks/lines.json")
    named = [(truth["family"], name) for truth in truths for name in truth["optimised"]]
    assert len(set(named)) == len(named) >= LEAST
    assert all(map(pairs.get, named))
    lines = [line for truth in truths for line in truth["lines"]]
    assert [line for line in lines if not any(f"\n{line}\n" in text for text in texts)] == []


def _read(path: str) -> list[dict[str, Any]]:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))
