"""Names of metrics on chips that call some otherwise than GH100, whose names the catalogue has, or that lack some."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_gpuperf.model.architectures import ARCHITECTURES, plain

REFERENCE = "GH100"

_NO_GMMA = {"smsp__average_warps_issue_stalled_gmma_per_issue_active": ""}
_NO_IMC_MISS = {"smsp__average_warps_issue_stalled_imc_miss_per_issue_active": ""}
_OWN_FP16_PIPE = {"sm__inst_executed_pipe_fma_type_fp16": "sm__inst_executed_pipe_fp16"}
_NO_DRAM = {"dram__bytes_read": "", "dram__bytes_write": "", "dram__throughput": ""}
_DRAM_OPERATIONS = {"dram__bytes_read": "dram__bytes_op_read", "dram__bytes_write": "dram__bytes_op_write"}

NAMES: Mapping[str, Mapping[str, str]] = {
    "TU102": {**_NO_GMMA, **_OWN_FP16_PIPE},
    "GA100": {**_NO_GMMA, **_OWN_FP16_PIPE},
    "GA102": _NO_GMMA,
    "GA10B": {**_NO_GMMA, **_NO_DRAM},
    "AD102": _NO_GMMA,
    "GH100": {},
    "GB100": {**_NO_GMMA, **_NO_IMC_MISS},
    "GB110": {**_NO_GMMA, **_NO_IMC_MISS},
    "GB10B": {**_NO_GMMA, **_NO_IMC_MISS, **_NO_DRAM},
    "GB20B": {**_NO_GMMA, **_NO_IMC_MISS, **_NO_DRAM},
    "GB202": {**_NO_GMMA, **_NO_IMC_MISS, **_DRAM_OPERATIONS},
}
"""By chip: GH100's name without its suffix, and the chip's own; empty: the chip has none."""


def chip_of(arch: str) -> str:
    """The chip that lends its names to an architecture; GH100 for one that the table does not have."""
    known = ARCHITECTURES.get(plain(arch))
    return known.chip if known else REFERENCE


def on_chip(name: str, chip: str) -> str | None:
    """The chip's own name of a metric; None if it has none."""
    base, dot, suffix = name.partition(".")
    own = NAMES[chip].get(base, base)
    return f"{own}{dot}{suffix}" if own else None


def canonical(name: str, chip: str) -> str:
    """GH100's name of a metric that the chip calls ``name``."""
    base, dot, suffix = name.partition(".")
    back = {own: reference for reference, own in NAMES[chip].items() if own}
    return f"{back.get(base, base)}{dot}{suffix}"
