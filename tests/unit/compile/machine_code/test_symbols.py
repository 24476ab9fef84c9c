"""Names of people to symbols of cubins, and names that are the same in every build of a source."""

from __future__ import annotations

import pytest

from pytest_gpuperf.compile.compile_errors import UnknownKernel
from pytest_gpuperf.compile.machine_code import symbols
from pytest_gpuperf.compile.machine_code.symbols import demangle, kernel_key, stable_symbol


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
    with pytest.raises(UnknownKernel, match="several kernels have this name"):
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


def part(name: str) -> str:
    """As it lies in a mangled name, behind its length."""
    return f"{len(name)}{name}"


BUILDS = {
    "another folder": (
        "_ZN33_GLOBAL__N__41f01efe_4_a_cu_table2tkINS_1TEEEvPT_",
        "_ZN33_GLOBAL__N__f81bae51_4_a_cu_table2tkINS_1TEEEvPT_",
        "void (anonymous namespace)::tk<(anonymous namespace)::T>((anonymous namespace)::T*)",
    ),
    "another hash of another length": (
        f"_ZN{part('_GLOBAL__N__b4be0d96_12_my_kernel_cu_a1b2c3d4_1234')}4anonEPf",
        f"_ZN{part('_GLOBAL__N__00be0d96_12_my_kernel_cu_a1b2c3d4_12345')}4anonEPf",
        "(anonymous namespace)::anon(float*)",
    ),
    "another CUB, other architectures": (
        "_ZN3cub47CUB_200802_SM_700_750_800_860_890_900_1000_120011EmptyKernelIvEEvv",
        f"_ZN3cub{part('CUB_200900_SM_800_900')}11EmptyKernelIvEEvv",
        "void cub::CUB_NS::EmptyKernel<void>()",
    ),
    "behind a name that ends in a digit": (
        f"_ZN2n1{part('CUB_200802_SM_700')}1fEv", f"_ZN2n1{part('CUB_300000_SM_900_1000')}1fEv", "n1::CUB_NS::f()",
    ),
}  # fmt: skip


@pytest.mark.parametrize("builds", BUILDS.values(), ids=BUILDS)
def test_builds_give_a_kernel_one_name_that_can_be_read(builds: tuple[str, str, str]) -> None:
    one, other, name = builds
    assert stable_symbol(one) == stable_symbol(other)
    assert kernel_key(one) == kernel_key(other)
    assert demangle(stable_symbol(one)) == name


def test_other_names_stay_as_they_are_and_files_and_kernels_apart() -> None:
    for symbol in ("work", "_Z4tileILi32EEvPf", "_Z5applyIZ2goPfEUlfE1_EvS0_T_", "99_GLOBAL__N__", "0_INTERNAL_1_"):
        assert stable_symbol(symbol) == symbol
    symbols = [
        "_ZN33_GLOBAL__N__41f01efe_4_a_cu_table4anonEPf", "_ZN33_GLOBAL__N__41f01efe_4_b_cu_table4anonEPf",
        "_ZN33_GLOBAL__N__41f01efe_4_a_cu_table4otheEPf", "_Z4tileILi32EEvPf", "_Z4tileILi64EEvPf",
    ]  # fmt: skip
    assert len({kernel_key(symbol) for symbol in symbols}) == len(symbols)


def test_lambdas_and_unnamed_types_share_a_key_whatever_their_number() -> None:
    lambdas = [f"_Z5applyIZ2goPfEUlfE{number}EvS0_T_" for number in ("_", "0_", "17_")]
    unnamed = [f"_Z1fIUt{number}EvT_" for number in ("_", "3_")]
    tags = [f"_Z1fI17__nv_dl_wrapper_tI11__nv_dl_tagIPFvPfEXadL_Z2goS2_EELj{number}EEJEEEvS2_T_" for number in (1, 12)]
    for alike in (lambdas, unnamed, tags):
        assert len({kernel_key(symbol) for symbol in alike}) == 1
    assert kernel_key(lambdas[0]) != kernel_key(lambdas[0].replace("2go", "2no"))


def test_a_number_in_the_name_of_a_kernel_is_part_of_it() -> None:
    for name in (
        "copy_TILE{}_k", "UlE{}_k", "Ut{}_k", "_Z13copy_TILE{}_kPf", "_ZN6STAGE{}_4copyEPf",
        "_Z1fILi{}EZ2goPfEUlfE_EvT0_S0_", "_Z1fIA{}_fZ2goPfEUlfE_EvT0_S0_",
    ):  # fmt: skip
        assert kernel_key(name.format(16)) != kernel_key(name.format(64))
