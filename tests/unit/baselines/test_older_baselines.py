"""Files that earlier versions have written say today what they said then, and are half as large when rewritten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_gpuperf.baselines.canonical import canonical_bytes
from pytest_gpuperf.baselines.file_types import StaticFile, TimeFile
from pytest_gpuperf.baselines.migrations import SCHEMA_VERSION
from pytest_gpuperf.baselines.parsing import decode

OLDER = sorted((Path(__file__).parent / "older").glob("*.json"))
"""As they lay in this repository: a GPU's files of schemas 1 and 4, an architecture's of schemas 1 to 4."""
PROFILES = [one for one in OLDER if one.stem.startswith("sm") and one.stem[-1] < "4"]
"""Those in which every workload has all figures of its machine code."""


def read(path: Path) -> tuple[StaticFile | TimeFile, dict]:
    content = path.read_bytes()
    tree = json.loads(content)
    return decode(content, path, tree["target"]), tree


@pytest.mark.parametrize("path", OLDER, ids=lambda path: path.stem)
def test_what_is_read_is_what_is_read_after_rewriting_it(path: Path) -> None:
    file, tree = read(path)
    assert tree["schema"] == int(path.stem[-1])
    content = canonical_bytes(file)
    assert json.loads(content)["schema"] == SCHEMA_VERSION
    assert decode(content, path, tree["target"]) == file
    if tree["schema"] < 3:  # files of the example suite, many workloads of few codes
        assert len(content) < 0.6 * path.stat().st_size


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_every_figure_of_machine_code_is_the_one_that_was_written(path: Path) -> None:
    file, tree = read(path)
    assert isinstance(file, StaticFile)
    for toolchain, tests in tree["toolchains"].items():
        for test, workloads in tests.items():
            for name, was in workloads.items():
                now = file.toolchains[toolchain][test][name]
                for field, figure in was["profile"].items():
                    assert field == "dry_run" or getattr(now.profile, field) == figure
                assert (now.kernel, now.source_hash, now.cubin) == (
                    was["kernel"],
                    was["source_hash"],
                    was.get("cubin", ""),
                )
                assert now.occupancy is None or now.occupancy.fraction == was["occupancy"]["fraction"]


def test_every_time_and_counter_is_the_one_that_was_written() -> None:
    file, tree = read(next(path for path in OLDER if path.stem.startswith("nvidia")))
    assert isinstance(file, TimeFile)
    for test, workloads in tree["tests"].items():
        for name, was in workloads.items():
            now = file.tests[test][name]
            assert [(one.session, one.process, one.midmean) for one in now.rounds] == [
                (one["session"], one["process"], one["midmean"]) for one in was["rounds"]
            ]
            assert [list(one.sm_clock_mhz or ()) for one in now.rounds] == [
                one.get("sm_clock_mhz", []) for one in was["rounds"]
            ]
            assert now.counters == was["counters"]
            assert (now.identity.code, now.cubin) == (was["identity"]["code"], was["cubin"])


def test_what_was_recorded_before_autotuners_were_has_no_configuration() -> None:
    path = next(path for path in OLDER if path.stem == "sm_90-4")
    file, tree = read(path)
    assert isinstance(file, StaticFile)
    found = {work.config for part in file.parts for test in part.values() for work in test.values()}
    assert found == {""}
    assert json.loads(canonical_bytes(file)) == {**tree, "schema": SCHEMA_VERSION}
