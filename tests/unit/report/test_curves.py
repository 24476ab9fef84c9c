"""Curves that a report finds by itself."""

from __future__ import annotations

import pytest
from record_samples import time_of

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.report.curves import found_curves


def timed(parameters: dict[str, str], microseconds: float, **declared: float) -> TestEvidence:
    name = f"test_scale[{'-'.join(parameters.values())}]"
    work = WorkloadEvidence(key=Key("test_k.py", name, "scale"), time=time_of(microseconds * 1e3, **declared))
    return TestEvidence(module="test_k.py", test=name, parameters=parameters, workloads=(work,))


def test_sizes_of_a_parameter_make_a_curve():
    tests = [timed({"size": size}, 2.0 * int(size)) for size in ("4", "1", "2")]
    (found,) = found_curves(tests)
    assert (found.node_id, found.x, found.y) == ("test_k.py::test_scale", "size", "time")
    data = found.data
    assert data["labels"] == ["1", "2", "4"]
    assert data["x"] == [1, 2, 4]
    assert not data["log_x"]
    assert data["curves"][0]["values"] == pytest.approx([2000.0, 4000.0, 8000.0])


def test_bandwidth_is_drawn_where_bytes_are_declared():
    tests = [timed({"size": size}, 2.0, bytes=4000) for size in ("1", "2", "3")]
    (found,) = found_curves(tests)
    assert found.y == "bandwidth"
    assert found.data["curves"][0]["values"][0] == pytest.approx(2e9)


def test_another_parameter_parts_the_curves():
    tests = [timed({"size": str(size), "kind": kind}, size) for size in (1, 10, 1000) for kind in ("float", "half")]
    (found,) = found_curves(tests)
    assert list(found.curves) == ["scale (kind=float)", "scale (kind=half)"]
    assert found.data["log_x"]


def test_two_sizes_and_words_are_no_curve():
    assert found_curves([timed({"size": size}, 1.0) for size in ("1", "2")]) == []
    assert found_curves([timed({"kind": kind}, 1.0) for kind in ("a", "b", "c")]) == []
