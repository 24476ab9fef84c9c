"""Which kernel is which: two builds of one file, with names that several kernels share."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.judge.audit import paired
from pytest_gpuperf.model.audited_kernel import AuditedKernel


def kernel(code: str, registers: int = 32) -> AuditedKernel:
    return AuditedKernel(code, registers, 0, 0, 0, 0, 128, 256, "best")


def key(symbol: str) -> str:
    """Kernels named ``f#1`` and ``f#2`` are lambdas of one function."""
    return re.sub(r"#\d+", "#", symbol)


def build(arch: str = "sm_90", **codes: str):
    """Kernels by name; a digit behind ``__`` numbers a lambda."""
    return {name.replace("__", "#"): {arch: [kernel(one) for one in code.split()]} for name, code in codes.items()}


def names(pairs) -> list[tuple[str, str]]:
    return [(old.symbol, new.symbol) for old, new in pairs]


def test_kernels_of_one_name_are_one_kernel() -> None:
    found = paired("f", build(a="1", b="2"), build(a="9", b="2"), key)
    assert names(found.kept) == [("a", "a"), ("b", "b")]
    assert (found.renamed, found.gone, found.new) == ([], [], [])


def test_a_lambda_that_is_put_before_others_does_not_exchange_them() -> None:
    found = paired("f", build(f__1="A", f__2="B"), build(f__1="X", f__2="A", f__3="B"), key)
    assert names(found.kept) == [("f#1", "f#2"), ("f#2", "f#3")]
    assert [place.symbol for place in found.new] == ["f#1"]


def test_lambdas_that_all_changed_are_paired_in_their_order() -> None:
    old, new = build(f__2="B", f__10="C"), build(f__3="X", f__12="Y")
    assert names(paired("f", old, new, key).kept) == [("f#10", "f#12"), ("f#2", "f#3")]


def test_a_symbol_that_stays_is_the_same_kernel_though_its_code_changed_and_another_of_its_key_went() -> None:
    found = paired("f", build(f__1="A", f__2="B"), build(f__2="X"), key)
    assert names(found.kept) == [("f#2", "f#2")]
    assert [place.symbol for place in found.gone] == ["f#1"]


def test_equal_code_under_another_name_was_renamed() -> None:
    found = paired("f", build(old="1", gone="2"), build(now="1", new="3"), key)
    assert names(found.renamed) == [("old", "now")]
    assert [place.symbol for place in found.gone] == ["gone"]
    assert [place.symbol for place in found.new] == ["new"]


def test_architectures_are_never_mixed_and_count_only_where_both_have_them() -> None:
    old = {"a": {"sm_80": [kernel("1")], "sm_90": [kernel("2")]}}
    new = {"a": {"sm_90": [kernel("1")], "sm_120": [kernel("2")]}}
    found = paired("f", old, new, key)
    assert [(one.arch, other.arch) for one, other in found.kept] == [("sm_90", "sm_90")]
    assert (found.renamed, found.gone, found.new) == ([], [], [])


def test_several_kernels_of_one_symbol_are_told_apart_by_their_code() -> None:
    found = paired("f", build(a="1 2"), build(a="2 3"), key)
    assert [(old.kernel.code, new.kernel.code) for old, new in found.kept] == [("1", "3"), ("2", "2")]


builds = st.dictionaries(
    st.sampled_from(["a", "b", "f#1", "f#2", "f#3"]), st.lists(st.sampled_from("123"), min_size=1, max_size=3)
).map(lambda codes: {name: {"sm_90": [kernel(code) for code in several]} for name, several in codes.items()})


@given(builds, builds)
def test_every_kernel_is_accounted_for_once(old, new) -> None:
    found = paired("f", old, new, key)
    both = bool(old and new)
    before = [pair[0][:4] for pair in (*found.kept, *found.renamed)] + [place[:4] for place in found.gone]
    after = [pair[1][:4] for pair in (*found.kept, *found.renamed)] + [place[:4] for place in found.new]
    for build_, places in ((old, before), (new, after)):
        assert len(set(places)) == len(places)
        assert len(places) == both * sum(len(several) for archs in build_.values() for several in archs.values())


@given(builds)
def test_a_build_is_itself(build_) -> None:
    found = paired("f", build_, build_, key)
    assert all(old == new for old, new in found.kept)
    assert (found.renamed, found.gone, found.new) == ([], [], [])
