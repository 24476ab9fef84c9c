"""Which tests have a kernel on record: by its symbol, by its name for people, and by its code."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from baseline_samples import make_key, make_session, make_static, time_update

from pytest_gpuperf.baselines.kernel_tests import KernelTests, kernel_tests
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import StaticRecord

OLD, NEW = "c0" * 32, "c1" * 32


def record(kernel: str, symbol: str = "", code: str = OLD) -> StaticRecord:
    made = make_static()
    return msgspec.structs.replace(
        made, kernel=kernel, symbol=symbol, profile=msgspec.structs.replace(made.profile, code_hash=code)
    )


@pytest.fixture
def found(tmp_path: Path) -> KernelTests:
    store = BaselineStore(tmp_path / "baselines")
    static = {
        ("sm_90", "nvrtc 13.0.88", make_key("test_a")): record("copy<float>", "_Z4copyIfEvv"),
        ("sm_90", "nvrtc 13.0.88", make_key("test_b")): record("scale", code=NEW),
        ("sm_80", "nvrtc 12.9.86", make_key("test_c", module="other/test_it.py")): record("copy<int>", "_Z4copyIiEvv"),
    }
    store.write(Update(static=static))
    store.write(time_update(make_session(), key=make_key("test_timed")))
    return kernel_tests(store)


A, B, C = (
    "example_suite/test_transpose.py::test_a",
    "example_suite/test_transpose.py::test_b",
    "other/test_it.py::test_c",
)


@pytest.mark.parametrize(
    ("symbol", "name", "codes", "tests"),
    [
        ("_Z4copyIfEvv", "", [], {A}),
        ("", "copy<int>", [], {C}),
        ("_Z4copyIfEvv", "copy<int>", [], {A, C}),
        ("scale", "", [], {B}),  # its symbol is its name
        ("", "", [OLD], {A, C}),
        ("", "", [NEW, "d0" * 32], {B}),
        ("", "", [OLD, NEW], {A, B, C}),
        ("another", "another", ["d0" * 32], set()),
    ],
)
def test_a_kernel_is_found_by_symbol_name_and_code(
    found: KernelTests, symbol: str, name: str, codes: list[str], tests: set[str]
) -> None:
    assert found.of(symbol, name, codes) == tests
