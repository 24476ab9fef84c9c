"""A gated run on a machine with a GPU, and one without."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from run_samples import Run


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with contextlib.ExitStack() as cleanups:
        yield Run(tmp_path, cleanups)


@pytest.fixture
def without_gpu(tmp_path: Path) -> Iterator[Run]:
    with contextlib.ExitStack() as cleanups:
        yield Run(tmp_path, cleanups, has_gpu=False)
