"""The tables that the documents print, made from what a run measured: one per family, with all its variants.

Nothing here measures or judges.  The documents' own figures stand beside the measured ones as gains over the same
variant: their GPUs are others, so that only ratios can be compared.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import counters
from claims import NotCollected


@dataclasses.dataclass(frozen=True)
class Headline:
    """One table: the workloads of one test."""

    title: str
    family: str
    test: str
    reference: str
    """The workload that gains are over."""
    documents: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Gains as the document has them, by workload."""

    @property
    def module(self) -> str:
        return f"test_{self.family}.py"


def _over(reference_time: float, times: Mapping[str, float]) -> dict[str, float]:
    return {workload: reference_time / time for workload, time in times.items()}


_SEGMENTS_US = {
    "Divide": ((41691, 17154, 16661), (45795, 22919, 11612)),
    "Compare": ((16376, 16379, 14514), (22655, 22653, 11425)),
    "Orient": ((15639, 15640, 14404), (21076, 21076, 11254)),
}
"""Of 100 000 segments on an A100, at three magnitudes: the predicate alone, and after the bounding box."""

HEADLINES = (
    Headline(
        "Transposing 32 x 32 matrices", "transpose32", "test_transpose_of_a_batch", "transpose_naive",
        {"transpose_copy": 580 / 149, "transpose_naive": 1, "transpose_coalesced": 3.07, "transpose_padded": 3.87},
    ),
    Headline(
        "A polynomial of degree 64, in six steps", "polynomial", "test_steps_from_pow_to_fma", "pow_double",
        _over(40_862, {"pow_double": 40_862, "pow_float": 6198, "running_power": 454.8, "horner": 319.1,
                       "horner_fma": 170.6}),
    ),
    Headline(
        "The same: independent instructions, or more blocks", "polynomial", "test_independent_work_or_more_blocks",
        "Horner, 1 block per SM",
        _over(326, {"Horner, 8 blocks per SM": 170, "Horner, 1 block per SM": 326, "Estrin, 8 blocks per SM": 171,
                    "Estrin, 1 block per SM": 192}),
    ),
    Headline(
        "Intersections of segments", "segment_intersection", "test_counting_among_many_segments", "Divide at 1e+19",
        _over(_SEGMENTS_US["Divide"][0][0], {
            f"{predicate}{where} at {magnitude}": time
            for predicate, both in _SEGMENTS_US.items()
            for where, times in zip(("", " after box"), both, strict=True)
            for magnitude, time in zip(("1e+19", "1e+18", "100"), times, strict=True)
        }),
    ),
    Headline(
        "Sample 1: redundant accesses", "sample1_redundant_access", "test_accumulating_over_an_array",
        "accumulate_naive", {"accumulate_naive": 1, "accumulate_register": 2.81},
    ),
    Headline("Sample 2: static arrays", "sample2_static_array", "test_adding_to_rows", "naive",
             {"naive": 1, "static": 4.0}),
    Headline(
        "Sample 3: layouts", "sample3_layout", "test_sums_of_a_matrix", "sum_rows of RowMajor",
        {"sum_rows of ColumnMajor": 1.14 / 0.52, "sum_rows of RowMajor": 1},
    ),
    Headline("Sample 4: local memory", "sample4_local_memory", "test_adding_rows", "add_indexed",
             {"add_indexed": 1, "add_switch": 10.37 / 6.98}),
    Headline("Sample 5: bounds known when compiling", "sample5_runtime_bound", "test_sums_of_an_array", "sum_runtime"),
    Headline("Sample 6: shapes of blocks", "sample6_mdrange", "test_blur_by_block_shape", "mdrange",
             {"mdrange": 1, "linear": 3.65}),
    Headline("Sample 7: a branch never taken", "sample7_template_branch", "test_blur_of_an_image", "branch",
             {"branch": 1, "template": 2.75}),
    Headline("Sample 8: divergence", "sample8_divergent_reduce", "test_reduction_with_a_branch", "sum_by_half_warp",
             {"sum_by_half_warp": 1, "sum_by_warp": 1.27}),
    Headline("Occupancy by block size", "occupancy_block_size", "test_copy_by_block_size", "block of 32"),
    Headline("Reduction", "reduce_sum", "test_sum_of_an_array", "reduce_tree"),
    Headline("Multiplying matrices", "matmul", "test_product_of_large_matrices", "matmul_naive"),
)  # fmt: skip


METRICS = frozenset({
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__sass_data_bytes_mem_global_op_ld.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
})  # fmt: skip
"""All the counters that a column reads."""


class IncompleteTable(ValueError):
    """A run did not measure all that one of the tables shows."""


@dataclasses.dataclass(frozen=True)
class Row:
    """What a run measured of one workload."""

    figures: Mapping[str, Any]
    """As ``measured.figures_of`` has them."""
    gain: float
    document: float | None

    @property
    def counters(self) -> Mapping[str, float]:
        found: Mapping[str, float] = self.figures.get("counters", {})
        return found

    def rate(self, of: str) -> float | None:
        """What it declared, in units of 1e9 per second."""
        return self.figures[of] / self.figures["time_ns"] if of in self.figures else None

    def per_byte(self, of: Callable[[Any], float]) -> float | None:
        """Declared operations per byte that a counter has."""
        if "flops" not in self.figures:
            return None
        moved = self.of_counters(of)
        return self.figures["flops"] / moved if moved else None

    def per_byte_of_dram(self) -> float | None:
        """None as well where the data stayed in the caches: what little was moved then is not the workload's."""
        moved = self.of_counters(counters.dram_bytes)
        if moved is None or moved < self.figures.get("bytes", math.inf) / 2:
            return None
        return self.per_byte(counters.dram_bytes)

    def of_counters(self, figure: Callable[[Any], float]) -> float | None:
        try:
            return figure(self)
        except NotCollected:
            return None


COLUMNS: Mapping[str, Callable[[Row], str | None]] = {
    "variant": lambda row: str(row.figures["workload"]).replace("|", "\\|"),
    "time": lambda row: _time(row.figures["time_ns"]),
    "gain": lambda row: f"{row.gain:.2f}",
    "the document's": lambda row: _optional(row.document, "{:.2f}"),
    "GB/s": lambda row: _optional(row.rate("bytes"), "{:.0f}"),
    "GFLOP/s": lambda row: _optional(row.rate("flops"), "{:.0f}"),
    "registers": lambda row: _optional(row.figures.get("registers"), "{}"),
    "occupancy": lambda row: _optional(row.figures.get("occupancy"), "{:.0%}"),
    "achieved": lambda row: _optional(row.of_counters(counters.achieved_occupancy), "{:.0f}%"),
    "FLOP per byte loaded": lambda row: _optional(row.per_byte(counters.bytes_asked_for), "{:.3g}"),
    "FLOP per byte of DRAM": lambda row: _optional(row.per_byte_of_dram(), "{:.3g}"),
}
"""A column is left out where no variant has anything to show in it."""


def tables(workloads: Sequence[Mapping[str, Any]]) -> str:
    """All of ``HEADLINES`` in Markdown.  Raises ``IncompleteTable``."""
    return "".join(_table(headline, _rows(headline, workloads)) for headline in HEADLINES)


def _rows(headline: Headline, workloads: Sequence[Mapping[str, Any]]) -> list[Row]:
    own = [each for each in workloads if each["test"] == headline.test and each["module"].endswith(headline.module)]
    times = {each["workload"]: each["time_ns"] for each in own if "time_ns" in each}
    wanted = {headline.reference, *headline.documents}
    if not wanted <= times.keys():
        raise IncompleteTable(
            f"no time of {', '.join(sorted(wanted - times.keys()))} in {headline.module}::{headline.test}"
        )
    return [
        Row(each, times[headline.reference] / each["time_ns"], headline.documents.get(each["workload"]))
        for each in own
        if "time_ns" in each
    ]


def _table(headline: Headline, rows: Sequence[Row]) -> str:
    cells = {name: [show(row) for row in rows] for name, show in COLUMNS.items()}
    shown = {name: column for name, column in cells.items() if any(cell is not None for cell in column)}
    lines = [f"\n### {headline.title}\n", f"| {' | '.join(shown)} |", "|" + "---|" * len(shown)]
    lines += [f"| {' | '.join(cell or '' for cell in line)} |" for line in zip(*shown.values(), strict=True)]
    return "\n".join(lines) + "\n"


def _optional(figure: float | None, form: str) -> str | None:
    return None if figure is None else form.format(figure)


def _time(time_ns: float) -> str:
    return f"{time_ns / 1e6:.3f} ms" if time_ns >= 1e6 else f"{time_ns / 1e3:.1f} us"
