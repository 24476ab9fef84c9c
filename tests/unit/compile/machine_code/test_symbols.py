"""Names of people to symbols of cubins, with and without a demangler on the machine."""

from __future__ import annotations

import pytest

from pytest_gpuperf.compile.compile_errors import UnknownKernel
from pytest_gpuperf.compile.machine_code import symbols


def test_parameter_types() -> None:
    for symbol, types in {
        "_Z4copyPfPKfi": ("float*", "float const*", "int"), "_Z4tileILi3EEvPf": ("float*",), "_Z5emptyv": (),
        "_Z4callPFvfEi": ("void (*)(float)", "int"), "_Z4pairSt4pairIifE": ("std::pair<int, float>",), "copy": None,
    }.items():  # fmt: skip
        assert symbols.parameter_types(symbol) == types


def test_names_for_people_have_arguments_of_templates_and_nothing_of_one_build() -> None:
    of_one_file = "_INTERNAL_707f4c69_8_whole_cu_18f5cf2a_3318"
    for symbol, name in (
        ("_Z4tileILi3EEvPf", "tile<3>"), ("_ZN2ns4copyEPf", "ns::copy"), ("_ZN2ns5tableE", "ns::table"),
        (f"_Z5applyIXadL_ZN{len(of_one_file)}{of_one_file}5twiceEfEEEvPf", "apply<&twice>"), ("_Zwrong!", "_Zwrong!"),
    ):  # fmt: skip
        assert symbols.readable(symbol) == name
    assert symbols.library_name("_ZN3cub6CUB_NS11EmptyKernelIvEEvv") == "cub::EmptyKernel<void>"


def test_without_a_demangler_symbols_are_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbols, "_demangler", lambda: None)
    assert symbols.parameter_types("_Z4copyPf") is None
    assert symbols.find_kernel("_Z4copyPf", ["_Z4copyPf"], "copy.cu") == "_Z4copyPf"
    with pytest.raises(UnknownKernel, match=r"there is: _Z4copyPf"):
        symbols.find_kernel("copy", ["_Z4copyPf"], "copy.cu")


def test_a_qualified_name_wins_over_last_parts() -> None:
    known = ["_ZN1a4copyEPf", "_ZN1b4copyEPf", "_Z4copyPf"]
    assert symbols.find_kernel("copy", known, "k.cu") == "_Z4copyPf"
    assert symbols.find_kernel("b::copy", known, "k.cu") == "_ZN1b4copyEPf"
    with pytest.raises(UnknownKernel, match="shared by several kernels"):
        symbols.find_kernel("copy", known[:2], "k.cu")


def test_every_name_that_a_message_lists_is_taken() -> None:
    """Those of an unnamed namespace too, whose known nvcc makes anew in each run."""
    unnamed = "_GLOBAL__N__0123abcd_7_part_cu_4567cdef"
    known = [f"_ZN{len(unnamed)}{unnamed}4copyEPf", "_ZN1b4copyEPi", "_Z5scalePf"]
    with pytest.raises(UnknownKernel) as caught:
        symbols.find_kernel("copy", known, "k.cu")
    listed = [line.strip() for line in str(caught.value).splitlines()[2:]]
    assert listed == ["(anonymous namespace)::copy(float*)", "b::copy(int*)"]
    assert [symbols.find_kernel(name, known, "k.cu") for name in listed] == known[:2]
    with pytest.raises(UnknownKernel) as caught:
        symbols.find_kernel("move", known, "k.cu")
    assert [symbols.find_kernel(name, known, "k.cu") for name in caught.value.available] == known
