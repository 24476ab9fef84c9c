"""Triton's kernels of ``test_callables.py``."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(total + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@triton.jit
def softmax(x, result, COLUMNS: tl.constexpr):
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    row = tl.load(x + at)
    raised = tl.exp(row - tl.max(row, axis=0))
    tl.store(result + at, raised / tl.sum(raised, axis=0))
