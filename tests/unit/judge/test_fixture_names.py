"""Names of fixtures in the place of tests."""

from __future__ import annotations

import pytest

from pytest_gpuperf.model.fixture_names import fixture_of, fixture_test


@pytest.mark.parametrize(
    ("labels", "inside", "expected"),
    [
        ([], "", "fixture kernels"), (["fast", "32"], "", "fixture kernels[fast-32]"),
        ([], "TestA::TestB", "TestA::TestB::fixture kernels"),
        (["a::fixture b"], "TestA", "TestA::fixture kernels[a::fixture b]"),
    ],
)  # fmt: skip
def test_a_name_is_read_as_it_was_made(labels: list[str], inside: str, expected: str) -> None:
    assert fixture_test("kernels", labels, inside) == expected
    assert fixture_of(expected) == "kernels"


@pytest.mark.parametrize("test", ["test_x", "TestA::test_x[fixture kernels]", "test_x[a::fixture b]", ""])
def test_a_test_is_no_fixture(test: str) -> None:
    assert fixture_of(test) == ""
