"""What the kernels of ``math_cost_ladder.cu`` repeat: references in float64, and in 32 bits for integers.

Everything here is for NumPy and CuPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

STEP = 2.0**-10
SCRAMBLE, SHIFT = 0x9E3779B1, 12345


class Operation(NamedTuple):
    """What is repeated, and how far the loop around it is unrolled."""

    step: Callable[..., Any]
    """The same in float64, of x, p and q."""
    p: float = 0.0
    q: float = 0.0
    unrolled: int = 16


def stepping(x: Any, p: float, q: float) -> Any:
    return x + np.where(x / (x + p) < q, STEP, -STEP)


OPERATIONS = {
    "Add": Operation(lambda x, p, _: x + p, 2.0**-8, unrolled=128),
    "Multiply": Operation(lambda x, p, _: x * p, 1 / 1.0001, 1.0001, unrolled=128),
    "Fma": Operation(lambda x, p, q: x * p + q, 0.999, 0.01, unrolled=128),
    "MultiplyThenAdd": Operation(lambda x, p, q: x * p + q, 0.999, 0.01, unrolled=128),
    "Divide": Operation(lambda x, _, q: x / q, 1 / 1.0001, 1.0001),
    "DivideByConstant": Operation(lambda x, *_: x / float(np.float32(1.0001))),
    "Root": Operation(lambda x, *_: np.sqrt(x)),
    "Sine": Operation(lambda x, *_: np.sin(x)),
    "DoubleLiteral": Operation(lambda x, *_: x * 0.999 + 0.001, unrolled=128),
    "FloatLiteral": Operation(lambda x, *_: x * 0.999 + 0.001, unrolled=128),
    "ConstantInLoop": Operation(lambda x, p, q: x * p + np.exp(q), 0.999, -4.0, unrolled=128),
    "Quotient": Operation(stepping, 1.0, 0.75),
    "Product": Operation(stepping, 1.0, 0.75),
}
REMAINDERS = {"Remainder": 7, "RemainderBy7": 7, "RemainderBy8": 8, "Mask": 8}
"""Divisors."""


def parameters(name: str) -> tuple[np.float32, np.float32]:
    """p and q, as the kernel has them."""
    operation = OPERATIONS[name]
    return np.float32(operation.p), np.float32(operation.q)


def repeated(name: str, x: Any, rounds: int) -> Any:
    """In float64."""
    p, q = (float(number) for number in parameters(name))
    x = x.astype("float64")
    for _ in range(rounds):
        x = OPERATIONS[name].step(x, p, q)
    return x


def remainders(x: Any, divisor: int, rounds: int) -> Any:
    """In 32 bits, as the kernel."""
    for _ in range(rounds):
        x = x % np.uint32(divisor) * np.uint32(SCRAMBLE) + np.uint32(SHIFT)
    return x


def places(x: Any, size: int, rounds: int) -> Any:
    """In 32 bits, as the kernel: of elements in arrays of five dimensions."""
    first = x
    for one in range(rounds):
        turn = first + np.uint32(one)
        for b, c in ((turn, first), (first, turn)):
            for index in (b, c, b, c):
                x = x * np.uint32(size) + index
    return x
