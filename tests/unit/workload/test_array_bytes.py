"""How much data a launch is given: overlaps once, and nothing of what an address leads to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_gpuperf.workload.figures import array_bytes


def on_device(address: int, elements: int) -> Any:
    """Bytes of another library's array."""
    facts = {"typestr": "|u1", "shape": (elements,), "data": (address, False), "version": 3}
    return SimpleNamespace(__cuda_array_interface__=facts)


@pytest.mark.parametrize(("arguments", "size"), [
    ((on_device(0, 100), on_device(200, 100), 7, 1.5, np.int32(3)), 200),
    ((on_device(0, 100), on_device(0, 100)), 100),
    ((on_device(0, 50), on_device(50, 100), on_device(0, 100)), 200),
    ((np.zeros(10), np.zeros(5)), 120), ((), 0), ((on_device(0, 100), 1 << 40, object()), 100),
])  # fmt: skip
def test_an_address_counts_once_and_bare_numbers_do_not(arguments: Any, size: int) -> None:
    assert array_bytes(SimpleNamespace(arguments=arguments)) == size  # type: ignore[arg-type]
