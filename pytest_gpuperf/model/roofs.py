"""The roofs of a GPU: the rates that its parts reach at most."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

ROOFS: Mapping[str, tuple[str, str]] = MappingProxyType({
    "dram": ("DRAM", "B/s"),
    "l2": ("L2", "B/s"),
    "shared": ("shared memory", "B/s"),
    "fp32": ("FP32", "FLOP/s"),
    "fp64": ("FP64", "FLOP/s"),
    "int32": ("INT32", "OP/s"),
    "fp16": ("the FP16 tensor cores", "FLOP/s"),
    "bf16": ("the BF16 tensor cores", "FLOP/s"),
    "fp8": ("the FP8 tensor cores (twice BF16, an estimate)", "FLOP/s"),
})  # fmt: skip
"""By name: the part in words, and the unit of its rate.

A multiply-add is two operations.  The tensor cores' rates are those of dense products by cuBLAS.
"""
