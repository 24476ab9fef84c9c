"""A difference of baselines as a reader sees it: rows, text and Markdown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.judge.diff import EvidenceDiff, TargetDiff, WorkloadDiff
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import Change
from pytest_gpuperf.report.diff import CUT_OFF, diff_markdown, entries_of, names_of, rows_of
from pytest_gpuperf.report.markdown import MOST_CHARACTERS

REGISTERS = Change(what="registers", before=40, after=48)
SPILLED = Change(what="spilled bytes", before=0, after=268, direction="worse")


def key(test: str = "test_scale[8]", workload: str = "scale", module: str = "test_a.py") -> Key:
    return Key(module=module, test=test, workload=workload)


def changed(
    where: Key, *runs: TargetDiff, archs: tuple[str, ...] = (), changes: tuple[Change, ...] = (REGISTERS,),
    kernel: str = "scale", was: Key | None = None,
) -> WorkloadDiff:  # fmt: skip
    code = (TargetDiff(arch, changes) for arch in archs)
    return WorkloadDiff(where, kernel, was, (*code, *runs))


def diff_of(*workloads: WorkloadDiff, new: tuple[Key, ...] = (), gone: tuple[Key, ...] = ()) -> EvidenceDiff:
    return EvidenceDiff(workloads, new, gone)


def rows(diff: EvidenceDiff) -> list[tuple[str, str, str]]:
    """Workloads, targets and figures."""
    return [(row.workloads, row.targets, row.figures) for row in rows_of(entries_of(diff))]


def test_figures_of_code_are_counted_where_there_are_many_and_missed_where_there_are_none() -> None:
    many = tuple(Change(what=f"instructions: c{n}", before=1, after=2) for n in range(20))
    for changes, end in (
        (many, "instructions: c7 1 -> 2, and 12 more"),
        ((), "machine code changed, its figures did not"),
    ):
        ((*_, figures),) = rows(diff_of(changed(key(), archs=("sm_90",), changes=changes)))
        assert figures.endswith(end)


def test_the_worst_module_and_kernel_come_first() -> None:
    slower, faster = TargetDiff("g", (), (100.0, 150.0)), TargetDiff("g", (), (100.0, 50.0))
    diff = diff_of(
        changed(key(module="test_a.py"), faster, kernel="a"),
        changed(key(module="test_b.py"), archs=("sm_90",), kernel="neutral"),
        changed(key(module="test_b.py"), archs=("sm_90",), changes=(SPILLED,), kernel="spills"),
        changed(key(module="test_c.py"), slower, kernel="c"),
    )
    shown = [(row.module, row.kernel) for row in rows_of(entries_of(diff))]
    assert shown == [("test_c.py", "c"), ("test_b.py", "spills"), ("test_b.py", "neutral"), ("test_a.py", "a")]


def test_names_of_few_are_said_and_of_many_counted() -> None:
    assert names_of([key("test_a"), key("test_b", "k")]) == "test_a [scale], test_b [k]"
    several = [key(f"test_a[{n}]") for n in range(4)] + [key("test_b", f"{n}") for n in range(2)]
    assert names_of(several) == "4 workloads of test_a[...], 2 of test_b"
    many = [key(f"test_{letter}", f"{n}") for letter in "abcde" for n in range(2)]
    assert names_of(many) == "2 workloads of test_a, 2 of test_b, 2 of test_c and 4 of others"


# --- Markdown ------------------------------------------------------------------------------------


HOSTILE = st.text(alphabet=st.sampled_from("`|<>*_[]!@#\\&\n\r ~x"), min_size=1, max_size=30)


@given(HOSTILE, HOSTILE, HOSTILE)
def test_no_name_leaves_its_cell_or_becomes_markup(test: str, kernel: str, figure: str) -> None:
    change = Change(what=figure, before=figure, after="x")
    one = changed(key(test, test), archs=("sm_90",), changes=(change,), kernel=kernel)
    text = diff_markdown("t", rows_of(entries_of(diff_of(one))), [], "s")
    _, _, row = (line for line in text.splitlines() if line.startswith("|"))
    inner = row.replace("\\\\", "")
    assert inner.count("|") - inner.count("\\|") == 5
    assert row.count("<") == row.count("<code>") + row.count("</code>") == 2
    assert inner.count("`") == inner.count("\\`")
    assert not any(f"@{letter}" in row for letter in "x_*[")


def test_markdown_fits_a_comment_and_says_what_was_cut_off() -> None:
    many = [changed(key(f"test_{n}", "w" * 150), archs=("sm_90",), kernel=f"k{n}") for n in range(2000)]
    text = diff_markdown("t", rows_of(entries_of(diff_of(*many))), [], "s")
    assert MOST_CHARACTERS - 1000 < len(text) <= MOST_CHARACTERS
    assert text.endswith(f"|\n\n{CUT_OFF}\n")
    one = changed(key("x" * 10_000, "y" * 10_000), archs=("sm_90",), kernel="k" * 10_000)
    (row,) = rows_of(entries_of(diff_of(one)))
    assert len(row.kernel) == 200 >= len(row.workloads)
