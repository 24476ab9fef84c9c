"""Which folder of baselines a command works on: the one given, or the nearest of the usual name."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.cli.baseline_folder import folder_of
from pytest_gpuperf.errors import GpuperfError


def test_the_nearest_folder_is_found_from_below_and_one_that_is_given_comes_first(tmp_path: Path) -> None:
    deep = tmp_path / "lib" / "tests"
    deep.mkdir(parents=True)
    with pytest.raises(GpuperfError, match=r"no folder baselines in .* or above: name that .* with --baselines DIR"):
        folder_of(None, deep)
    (tmp_path / "baselines").mkdir()
    assert folder_of(None, deep) == tmp_path / "baselines"
    (tmp_path / "lib" / "baselines").mkdir()
    assert folder_of(None, deep) == tmp_path / "lib" / "baselines"
    assert folder_of(deep, deep) == deep
    with pytest.raises(GpuperfError, match=r"there is no folder .*gone: name that of the baselines"):
        folder_of(deep / "gone", deep)
