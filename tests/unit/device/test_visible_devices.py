"""Which GPU a worker takes: always one of the caller's own list, never a bare index of our own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_gpuperf.device.discovery import VARIABLE, bind_worker, visible_devices

UUIDS = ("GPU-8a56a4bc", "MIG-3f0c", "GPU-11")


def nothing_installed() -> Sequence[str]:
    raise AssertionError("NVML is asked only where the variable is not set")


@pytest.mark.parametrize(
    ("value", "entries"),
    [("0", ["0"]), ("3,1", ["3", "1"]), (" 2 , 0 ", ["2", "0"]), (",".join(UUIDS), list(UUIDS)), ("", []), ("-1", []),
     ("0,-1,2", ["0"]), ("1,,2", ["1"]), ("NoDevFiles", []), ("0,zero,1", ["0"])],
)  # fmt: skip
def test_the_list_is_read_as_the_driver_reads_it(value: str, entries: list[str]) -> None:
    assert visible_devices({VARIABLE: value}) == entries


def test_no_variable_is_not_an_empty_one() -> None:
    assert visible_devices({}) is None


@pytest.mark.parametrize(
    ("value", "worker", "entry", "index"),
    [("4,6", 0, "4", 0), ("4,6", 1, "6", 1), ("4,6", 2, "4", 0), (",".join(UUIDS), 1, "MIG-3f0c", 1), ("7", 5, "7", 0)],
)
def test_a_worker_is_bound_to_an_entry_of_the_callers_list(value: str, worker: int, entry: str, index: int) -> None:
    environ = {VARIABLE: value}
    assert bind_worker(environ, worker, nothing_installed) == index
    assert environ == {VARIABLE: entry}


def test_without_the_variable_a_worker_is_bound_by_uuid() -> None:
    environ: dict[str, str] = {}
    assert bind_worker(environ, 4, lambda: ["GPU-0", "GPU-1", "GPU-2"]) == 1
    assert environ == {VARIABLE: "GPU-1"}
