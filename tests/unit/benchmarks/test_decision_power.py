"""The simulation of the decision: it is the product's own, and turns red where there is something to see."""

from __future__ import annotations

import json
from pathlib import Path

import decision_power
import numpy as np
import pytest

from pytest_gpuperf.judge.decision import decide
from pytest_gpuperf.model.limits import TIGHT


@pytest.mark.parametrize("effect", [0.0, 0.007, 0.01, -0.02])
def test_blocks_are_decided_as_by_the_product(effect: float) -> None:
    rng = np.random.default_rng(3)
    r = rng.normal(effect, 0.004, (20, 128))
    means = r + np.where(rng.random(r.shape) < 0.1, 0.3, 0.0)
    names = ("SLOWER", "FASTER", "SAME", "UNDECIDED")
    for alpha, (codes, stops) in zip((1e-2, 1e-5), decision_power.decided(r, means, (1e-2, 1e-5)), strict=True):
        for row, (code, stop) in enumerate(zip(codes, stops, strict=True)):
            for used in range(1, stop + 1):
                found = decide(r[row, :used].tolist(), TIGHT, alpha, means[row, :used].tolist())
                assert (found.name if found else "UNDECIDED") == names[code if used == stop else 3]


def test_page_of_recorded_blocks(tmp_path: Path) -> None:
    blocks = {"percent": 0.0, "r": list(range(-20, 20)), "means": [7] * 40}
    document = {"gpu": "NVIDIA H100", "unit": 1e-4, "sequences": [blocks, {"percent": 1.0, "r": [1]}]}
    (tmp_path / "loop.json").write_text(json.dumps(document))
    page = tmp_path / "page.md"
    assert decision_power.main(["--blocks", str(tmp_path), "--runs", "100", "--output", str(page)]) == 0
    assert "(40 of NVIDIA H100s)" in page.read_text()
    assert "| recorded, NVIDIA H100 | +0 % | 20 | 0 |" in page.read_text()


def test_equal_work_that_is_slower_breaks_the_promise() -> None:
    def slower(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        return (np.full((rows, 128), 0.02),) * 2

    rows, broken = decision_power.blocks_table({"slower": slower}, 10)
    assert broken
    assert rows[0].startswith("| slower | +0 % | 1 | 10 |")
