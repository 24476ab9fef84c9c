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


def test_templates_are_listed_with_their_arguments() -> None:
    assert symbols.readable("_Z4tileILi3EEvPf") == "tile<3>"
    assert symbols.readable("_ZN2ns4copyEPf") == "ns::copy"


def test_what_nvcc_puts_before_names_of_one_file_is_not_shown() -> None:
    of_one_file = "_INTERNAL_707f4c69_8_whole_cu_18f5cf2a_3318"
    symbol = f"_Z5applyIXadL_ZN{len(of_one_file)}{of_one_file}5twiceEfEEEvPf"
    assert symbols.readable(symbol) == "apply<&twice>"


def test_a_symbol_that_is_not_mangled_right_has_no_cpp_name() -> None:
    assert symbols.demangle("_Zwrong!") is None


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


def test_symbols_of_libraries_have_the_names_of_their_source() -> None:
    known = ["work", "_Z4tileILi3EEvPf", "_ZN3cub6CUB_NS11EmptyKernelIvEEvv", "_ZN16_GLOBAL__N__a_cu4anonEPf"]
    assert [symbols.library_name(one) for one in known] == [
        "work", "tile<3>", "cub::EmptyKernel<void>", "(anonymous namespace)::anon",
    ]  # fmt: skip
