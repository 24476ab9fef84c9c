"""What the checklist of the chapter says that a change is worth, against the suite's pairs that differ in it.

From the "Optimization" chapter of a CUDA course.  The figures are those on record for an H200, of every pair of some
families that is slow of one thing: their geometric mean, and the smallest and the largest.  Other rows of the checklist
are looked at where the chapter's own kernel is measured: MM-06 and MM-07, RED-01, MMA-03 and STR-01.  So are the
thresholds for counters, by the families that have a kernel on either side of them.
"""

import statistics
from typing import NamedTuple

import pytest
from claims import NotLookedAt
from pairs import PAIRS
from recorded import Recorded


class Row(NamedTuple):
    """What a row of the checklist is about."""

    cause: str
    families: frozenset[str]


ROWS = {
    "CHK-01": Row("uncoalesced access", frozenset({"access_patterns", "sample3_layout", "transpose32"})),
    "CHK-03": Row(
        "divergence",
        frozenset(
            {
                "divergent_branch", "md_tile_spatial_sort", "moro_inversion", "polygon_edge_dataflow",
                "sample8_divergent_reduce", "scout_and_dive", "select_dataflow", "simt_divergence_mask",
            }
        ),
    ),
    "CHK-04": Row("bank conflicts", frozenset({"bank_conflicts", "transpose32"})),
    "CHK-06": Row("occupancy lost", frozenset({"kernel_fission", "occupancy_smem_cards", "sample7_template_branch"})),
    "CHK-09": Row("launch configuration", frozenset({"dynamic_block_dims", "occupancy_block_size", "sample6_mdrange"})),
}  # fmt: skip


def gains_of(row):
    """Of its pairs, which have to be on record."""
    recorded = Recorded()
    gains = {pair: recorded.gain(pair) for pair in PAIRS if pair.cause == row.cause and pair.family in row.families}
    assert {pair.family for pair in gains} == row.families
    for pair, gain in gains.items():
        if gain is None:
            raise NotLookedAt(f"{pair.optimised} and {pair.naive} of {pair.family} are not on record")
    return list(gains.values())


@pytest.mark.parametrize("promise", ROWS)
def test_what_a_row_of_the_checklist_is_worth(promise, claim):
    row = ROWS[promise]
    smallest, largest = (lambda: min(gains_of(row))), (lambda: max(gains_of(row)))
    claim(promise, lambda: statistics.geometric_mean(gains_of(row)), because=[smallest, largest])
