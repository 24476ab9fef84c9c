"""Two builds of several files, kernel by kernel: what is compared, what came and went, and how it is counted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from judge_samples import static

from pytest_gpuperf.judge.audit import Audit, Judged, KernelPlace, compared, counts, joined, judged
from pytest_gpuperf.model.audited_kernel import AuditedKernel
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.verdict import Judgement, Verdict


def kernel(code: str, registers: int = 32, block_from: Any = "best") -> AuditedKernel:
    return AuditedKernel(code, registers, 0, 0, 0, 0, 128, 256, block_from)


def built(*codes: str, archs: tuple[str, ...] = ("sm_90",)) -> Any:
    """Kernels ``k0``, ``k1`` and so on, each with one code for all architectures."""
    return {f"k{number}": {arch: [kernel(code)] for arch in archs} for number, code in enumerate(codes)}


def record_of(place: KernelPlace) -> StaticRecord:
    return static(code_hash=place.kernel.code, registers=place.kernel.registers)


def audit(old: Any, new: Any) -> Audit:
    return compared(old, new, str, record_of)


def symbols(places: list[KernelPlace]) -> list[tuple[str, str]]:
    return [(place.file, place.symbol) for place in places]


def test_each_kernel_of_both_builds_is_judged() -> None:
    found = audit({"b.so": built("1"), "a.so": built("2", "3")}, {"a.so": built("2", "4"), "b.so": built("1")})
    assert [(one.new.file, one.new.symbol, one.judgement.verdict) for one in found.judged] == [
        ("a.so", "k0", Verdict.UNCHANGED), ("a.so", "k1", Verdict.SAME), ("b.so", "k0", Verdict.UNCHANGED)
    ]  # fmt: skip
    assert [(one.old.kernel.code, one.new.kernel.code) for one in found.judged] == [("2", "2"), ("3", "4"), ("1", "1")]
    assert found[1:] == ([], [], [], [])


def test_kernels_that_came_went_or_have_another_name_are_told_apart() -> None:
    old = {"a.so": {"one": {"sm_90": [kernel("1")]}, "two": {"sm_90": [kernel("2")]}}, "b.so": built("7")}
    new = {"a.so": {"uno": {"sm_90": [kernel("1")]}, "due": {"sm_90": [kernel("3")]}}, "b.so": built("7", "8")}
    found = audit(old, new)
    assert [(old.symbol, new.symbol) for old, new in found.renamed] == [("one", "uno")]
    assert (symbols(found.gone), symbols(found.new)) == ([("a.so", "two")], [("a.so", "due"), ("b.so", "k1")])
    assert len(found.judged) == 1


def test_what_several_names_have_in_common_makes_them_one_kernel() -> None:
    old = {"a.so": {"f_1": {"sm_90": [kernel("1")]}}}
    new = {"a.so": {"f_2": {"sm_90": [kernel("2")]}}}
    assert audit(old, new).judged == []
    found = compared(old, new, lambda symbol: symbol[0], record_of)
    assert [(one.old.symbol, one.new.symbol) for one in found.judged] == [("f_1", "f_2")]


def test_files_and_architectures_that_came_or_went_are_told_as_a_whole() -> None:
    two = ("sm_80", "sm_90")
    old = {"a.so": built("1", "2", archs=two), "gone.so": built("1", "2", archs=two), "z.so": built("1")}
    new = {"a.so": built("1", "2", archs=("sm_100", "sm_90")), "new.so": built("1"), "z.so": built("1")}
    twice = {"k": {"sm_75": [kernel("1"), kernel("2")], "sm_90": [kernel("1")]}}
    found = audit({**old, "twice.so": twice}, {**new, "twice.so": {"k": {"sm_90": [kernel("1")]}}})
    assert found.whole == [
        "a.so: no longer for sm_80 (2 kernels)",
        "a.so: for sm_100 too now (2 kernels)",
        "gone.so: gone, with 4 kernels",
        "new.so: new, with 1 kernel",
        "twice.so: no longer for sm_75 (2 kernels)",
    ]
    assert [one.new.file for one in found.judged] == ["a.so", "a.so", "twice.so", "z.so"]


def place(code: str, block_from: Any = "best", registers: int = 32) -> KernelPlace:
    return KernelPlace("a.so", "sm_90", "k", 0, kernel(code, registers, block_from))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [("best", "best", False), ("bound", "bound", True), ("best", "bound", True), ("bound", "best", True)],
)
def test_a_block_is_a_change_unless_both_are_the_best_of_their_code(before: str, after: str, told: bool) -> None:
    def launched(one: KernelPlace) -> StaticRecord:
        block = (256, 1, 1) if one.kernel.code == "1" else (512, 1, 1)
        return msgspec.structs.replace(record_of(one), block=block)

    found = judged(place("1", before), place("2", after, 40), launched)
    assert [change.what for change in found.changes] == (["block", "registers"] if told else ["registers"])
    assert (found.key, found.target) == (Key(module="a.so", test="", workload="k"), "sm_90")


def test_several_audits_are_one() -> None:
    one = audit({"a.so": built("1", "2")}, {"a.so": built("1")})
    two = audit({"b.so": built("1")}, {"b.so": built("1", "2"), "c.so": built("1")})
    three = audit({"d.so": {"one": {"sm_90": [kernel("1")]}}}, {"d.so": {"uno": {"sm_90": [kernel("1")]}}})
    found = joined(iter([one, two, three]))
    assert found == Audit(
        one.judged + two.judged, three.renamed, one.gone, two.new, two.whole
    )  # fmt: skip
    assert all(found)


def test_kernels_are_counted_by_verdict_the_worst_first() -> None:
    verdicts = (Verdict.SAME, Verdict.UNCHANGED, Verdict.WORSE, Verdict.SAME, Verdict.BETTER, Verdict.NOT_COMPARABLE)
    key = Key(module="a.so", test="", workload="k")
    all_of = [
        Judged(place("1"), place("1"), Judgement(key=key, target="sm_90", kind="static", verdict=one))
        for one in verdicts
    ]
    found = counts(Audit(all_of, [], [], [], []))
    assert list(found.items()) == [
        (Verdict.WORSE, 1), (Verdict.NOT_COMPARABLE, 1), (Verdict.BETTER, 1), (Verdict.SAME, 2), (Verdict.UNCHANGED, 1)
    ]  # fmt: skip
    assert counts(Audit(all_of[:1], [], [], [], [])) == {Verdict.SAME: 1}
