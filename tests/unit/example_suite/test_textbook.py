"""The textbook is what kernels, baselines, counters and lessons make of it, and its exercises can be done."""

from __future__ import annotations

import dataclasses
import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SUITE = Path(__file__).parents[3] / "example_suite"
LESSONS = SUITE / "lesson_data"
FAMILIES = sorted(path.stem for path in (SUITE / "kernels").glob("*.cu"))


def suite_module(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    monkeypatch.syspath_prepend(SUITE)  # type: ignore[no-untyped-call]
    return importlib.import_module(name)


@pytest.fixture
def textbook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return suite_module(monkeypatch, "textbook")


@pytest.fixture
def exercises(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return suite_module(monkeypatch, "exercises")


def test_every_family_has_a_lesson_and_no_other() -> None:
    assert sorted(path.stem for path in LESSONS.glob("*.json")) == FAMILIES, "see example_suite/lessons.py"


def test_pages_are_up_to_date(textbook: ModuleType) -> None:
    assert textbook.stale_pages(textbook.pages(textbook.Recorded())) == [], "run python example_suite/textbook.py"


def test_pictures_show_the_figures_on_record(textbook: ModuleType) -> None:
    assert textbook.stale_pictures(textbook.Recorded()) == [], "run python example_suite/textbook.py"


def test_a_changed_page_and_a_page_of_no_family_are_noticed(
    textbook: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(textbook, "PAGES", tmp_path)
    for name, text in {"a.md": "old", "b.md": "kept", "gone.md": ""}.items():
        (tmp_path / name).write_text(text)
    assert textbook.stale_pages({"a.md": "new", "b.md": "kept", "c.md": ""}) == ["a.md", "c.md", "gone.md"]


def test_a_picture_of_other_figures_and_a_picture_of_nothing_are_noticed(
    textbook: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(textbook, "PICTURES", tmp_path)
    picture = "<svg><dc:description>{&quot;a over b&quot;: 2.5}</dc:description></svg>"
    (tmp_path / "same.svg").write_text(picture)
    (tmp_path / "other.svg").write_text(picture)
    (tmp_path / "gone.svg").write_text(picture)
    data = {"same": {"a over b": 2.5}, "other": {"a over b": 2.51}, "new": {"a over b": 2.5}}
    monkeypatch.setattr(textbook, "picture_data", lambda _: data)
    assert textbook.stale_pictures(textbook.Recorded()) == ["other", "new", "gone"]


def test_a_family_without_a_lesson_is_named_with_the_file_to_write(textbook: ModuleType) -> None:
    with pytest.raises(textbook.NoLesson, match=r"transpose23.*lesson_data/transpose23\.json"):
        textbook.lesson_of("transpose23")


def test_families_come_in_the_order_of_the_tour(textbook: ModuleType) -> None:
    readme = (
        "### Latency\n\n**one** [GTC25]: text\nof two lines\n<!-- gain one -->\n* 2: `a` over `b`\n\n"
        "### Shared memory\n\n**two** [GTC23, BLOG]: other text\n\n**not** a family\n"
    )
    assert textbook.tour(readme) == [
        ("one", "Latency", ("GTC25",), "text of two lines"),
        ("two", "Shared memory", ("GTC23", "BLOG"), "other text"),
    ]
    assert sorted(textbook.families()) == FAMILIES


def test_exercises_change_what_is_there_once(exercises: ModuleType) -> None:
    for family in FAMILIES:
        exercise = exercises.lesson_of(family).exercise
        assert exercises.changed(exercise) != (SUITE / exercise.file).read_text(encoding="utf-8"), family
        assert all(exercise.see), f"an exercise shows something: {family}"


def test_a_change_of_what_is_not_there_is_an_error(exercises: ModuleType) -> None:
    exercise = dataclasses.replace(exercises.lesson_of("transpose32").exercise, replace="kSide + 2>(in")
    with pytest.raises(exercises.BadExercise, match="0 times"):
        exercises.changed(exercise)


@pytest.mark.parametrize("family", ["transpose32", "sample4_local_memory"])
def test_an_exercise_shows_what_its_page_says(exercises: ModuleType, family: str) -> None:
    assert exercises.not_seen(family) == []


def test_words_that_an_exercise_does_not_show_are_named(exercises: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exercises, "run", lambda *_: "assert 4096 == 4224 1 failed in 2 s")
    assert exercises.not_seen("transpose32") == ["likely bank conflicts on sm_90"]


def test_an_exercise_that_is_green_where_its_page_says_red_is_named(
    exercises: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "assert 4096 == 4224 likely bank conflicts on sm_90 likely slow-path division on sm_90"
    monkeypatch.setattr(exercises, "run", lambda *_: f"{words} 9 static only in 2 s")
    assert exercises.not_seen("transpose32") == ["a failed test"]
    assert exercises.not_seen("segment_intersection") == []
    monkeypatch.setattr(exercises, "run", lambda *_: f"{words} 1 failed, 8 static only in 2 s")
    assert exercises.not_seen("transpose32") == []
    assert exercises.not_seen("segment_intersection") == ["a run without a failed test"]


def test_every_page_says_what_its_names_are_and_answers_its_question(
    textbook: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = suite_module(monkeypatch, "pairs")
    for station in textbook.stations():
        text = (textbook.PAGES / f"{station.family}.md").read_text(encoding="utf-8")
        assert station.answer, f"the tour in example_suite/README.md has no words on {station.family}"
        assert "\n\nIn short: " in text
        names = {name for pair in pairs.PAIRS if pair.family == station.family for name in (pair.naive, pair.optimised)}
        assert [name for name in names if f"\n| `{name}` | " not in text] == []


def test_a_lesson_shows_pairs_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    page = suite_module(monkeypatch, "textbook_page")
    shown = {pair.optimised for pair in page.shown_pairs("transpose32")}
    assert shown == set(json.loads((LESSONS / "transpose32.json").read_text())["pairs"])
    monkeypatch.setattr(page, "lesson_of", lambda _: type("Lesson", (), {"pairs": ["transpose_paded"]}))
    with pytest.raises(ValueError, match="transpose_paded"):
        page.shown_pairs("transpose32")


SOURCE = """\
// Head.
constexpr int kSide = 32;  // elements

struct Slow {
    static float of(float x) { return x / 3.0f; }
};

struct Fast {
    static float of(float x) { return x * kThird; }
};

template <typename Way>
__device__ float both(float x)
{
    return Way::of(x);
}

extern "C" __global__ void __launch_bounds__(kSide) slow(float* x)
{
    *x = both<Slow>(*x);
}

extern "C" __global__ void fast(float* x)
{
    *x = both<Fast>(*x);
}

template <typename Way>
__global__ void any(float* x)
{
    *x = Way::of(*x);
}
"""


@pytest.fixture
def kernel_text(monkeypatch: pytest.MonkeyPatch) -> Any:
    return suite_module(monkeypatch, "kernel_text")


def test_the_head_of_a_source_is_its_first_comment(kernel_text: Any) -> None:
    assert kernel_text.head("// What.\n//\n//   a  one\n\n// of a constant\nint a;\n") == "What.\n\n  a  one"
    assert kernel_text.head("int a;\n// later\n") == ""


def test_definitions_are_found_by_name(kernel_text: Any) -> None:
    assert list(kernel_text.definitions(SOURCE)) == ["Slow", "Fast", "both", "slow", "fast", "any"]


def test_the_difference_leaves_out_what_both_sides_use(kernel_text: Any) -> None:
    lines = kernel_text.difference(SOURCE, "slow", "fast")
    assert "-    static float of(float x) { return x / 3.0f; }" in lines
    assert "+    *x = both<Fast>(*x);" in lines
    assert not any("both(float x)" in line for line in lines)


def test_instantiations_of_a_template_differ_in_their_arguments(kernel_text: Any) -> None:
    lines = kernel_text.difference(SOURCE, "any<Slow>", "any<Fast>")
    assert lines[0] == "-// any<Slow>"
    assert not any("__global__" in line for line in lines)
    assert kernel_text.difference(SOURCE, "any<Slow>", "any<Slow>") == []


def test_what_both_sides_use_is_shown_if_their_difference_names_it(kernel_text: Any) -> None:
    assert kernel_text.definitions("\n".join(kernel_text.shared(SOURCE, "slow", "fast"))).keys() == {"both"}
    assert kernel_text.definitions("\n".join(kernel_text.shared(SOURCE, "any<Slow>", "any<Fast>"))).keys() == {"any"}
    assert kernel_text.definitions("\n".join(kernel_text.shared(SOURCE, "slow", "slow"))).keys() == {"slow"}


@pytest.fixture
def codes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Machine code of the two pairs of transpose32."""
    page, machine_code = suite_module(monkeypatch, "textbook_page"), suite_module(monkeypatch, "machine_code")
    recorded = page.Recorded()
    pairs = [page.code_pair(pair, recorded) for pair in page.shown_pairs("transpose32")]
    return machine_code.machine_codes(pairs)


def test_opcodes_of_both_sides_are_counted(codes: Any) -> None:
    counts = {name: (naive, optimised) for name, naive, optimised in codes[0].counts}
    assert {name: counts[name] for name in ("BAR", "LDS", "STS")} == {"BAR": (0, 1), "LDS": (0, 1), "STS": (0, 1)}
    assert {line.split()[1].split(".")[0] for line in codes[0].decisive} == {"BAR", "LDS", "STS"}


def test_where_no_opcode_differs_operands_are_shown(codes: Any) -> None:
    assert codes[1].counts == []
    assert [line[0] for line in codes[1].decisive[:2]] == ["-", "+"]


def test_what_is_shown_of_a_pair_does_not_depend_on_what_is_disassembled_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page, machine_code = suite_module(monkeypatch, "textbook_page"), suite_module(monkeypatch, "machine_code")
    recorded = page.Recorded()
    of_transpose, of_branch = (
        page.code_pair(page.shown_pairs(family)[0], recorded) for family in ("transpose32", "select_dataflow")
    )
    alone, after = machine_code.machine_codes([of_branch])[0], machine_code.machine_codes([of_transpose, of_branch])[1]
    assert any("BRA" in line for line in alone.decisive)
    assert after.decisive == alone.decisive


def test_an_arrow_is_as_long_as_the_gain_where_both_sides_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    roofline = suite_module(monkeypatch, "roofline")
    recorded = roofline.Recorded()
    (pair,) = (pair for pair in roofline.PAIRS if pair.family == "sample1_redundant_access" and "reg" in pair.optimised)
    arrow = roofline.arrow(pair, recorded)
    assert arrow.optimised.gflops / arrow.naive.gflops == pytest.approx(recorded.gain(pair), rel=0.02)
    assert arrow.naive.intensity == pytest.approx(arrow.optimised.intensity, rel=0.2)  # neither side loads twice


def test_roofs_are_above_all_points(monkeypatch: pytest.MonkeyPatch) -> None:
    roofline = suite_module(monkeypatch, "roofline")
    picture = roofline.picture(roofline.Recorded())
    bandwidth, *_, tensor = picture.roofs
    ends = [end for arrow in picture.arrows for end in (arrow.naive, arrow.optimised)]
    assert len(ends) > 100
    assert all(end.gflops <= tensor.peak for end in ends)
    # Bytes that a test declares may be more than those that were counted: some stay in the L2 from run to run.
    assert [end for end in ends if end.intensity and end.gflops / end.intensity > 1.1 * bandwidth.peak] == []
