"""Grids that several families launch."""

from __future__ import annotations


def blocks_over(elements: int, block: int) -> int:
    """Blocks of so many threads, so that every element has a thread of its own."""
    return -(-elements // block)
