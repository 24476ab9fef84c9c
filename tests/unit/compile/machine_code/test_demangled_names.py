"""Names for people, of symbols that a stranger may have made."""

from __future__ import annotations

import time

import pytest

from pytest_gpuperf.compile.machine_code import demangled_names
from pytest_gpuperf.compile.machine_code.demangled_names import names_of

BOMB = "_Z1f1XIiiE" + "".join(f"S_IS{number}_S{number}_E" for number in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""Each of its types holds the one before twice: 2 ** 36 names."""


def test_symbols_have_the_names_of_their_source() -> None:
    symbols = ["work", "_Z4tileILi3EEvPf", "_ZN3cub6CUB_NS11EmptyKernelIvEEvv", "_ZN16_GLOBAL__N__a_cu4anonEPf"]
    assert names_of(symbols) == dict(
        zip(symbols, ["work", "tile<3>", "cub::EmptyKernel<void>", "(anonymous namespace)::anon"], strict=True)
    )


def test_a_name_that_would_never_end_costs_a_bounded_time_and_no_other_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(demangled_names, "_LIMIT_S", 2)
    began = time.monotonic()
    found = names_of([BOMB, "_Z3addPf"])
    assert time.monotonic() - began < 10
    assert found == {BOMB: "f", "_Z3addPf": "add"}


def test_a_module_of_the_current_folder_is_not_taken_for_one_of_the_library(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GPUPERF_TESTS_COLD", "1")  # a warm process has imported the library's before
    (tmp_path / "resource.py").write_text("raise SystemExit('not the library')")
    monkeypatch.chdir(tmp_path)
    (name,) = names_of(["_ZN16_GLOBAL__N__a_cu4anonEPf"]).values()
    assert name == "(anonymous namespace)::anon"
