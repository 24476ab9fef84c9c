"""Names, logs and messages of others: what a terminal and a CI job get of them is text, and nothing else."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.cli import command_line
from pytest_gpuperf.formatting import harmless, visible

HOSTILE = st.lists(
    st.sampled_from(["::error file=a::b", "##[group]", "##vso[task.setvariable]", "##teamcity[", "\x1b[2J", "\r", "\n",
                     "\u202e", "\u2066", "\x85", "\u2028", "\ud800", "\t", " ", "\u3000", ":", "#", "[", "\\", "x"])
    | st.text(max_size=5)
).map("".join)  # fmt: skip


def is_command(line: str) -> bool:
    """As the runners of GitHub, Azure and TeamCity look for one: the first where a line begins, the others anywhere."""
    return re.match(r"::[A-Za-z]", line.lstrip()) is not None or re.search(r"##\w*\[", line) is not None


@given(HOSTILE)
def test_whatever_comes_no_line_is_a_command_and_nothing_steers_the_terminal(text: str) -> None:
    shown = harmless(text)
    assert not any(map(is_command, shown.splitlines()))
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", shown
    )
    assert shown.count("\n") == text.count("\n")
    assert harmless(shown) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error file=a.py::gone", r"\x3a:error file=a.py::gone"),
        ("fine\n  ::set-output name=a::b", "fine\n  \\x3a:set-output name=a::b"),
        ("\r::warning::x", r"\r::warning::x"),
        ("##[error]x", r"\x23#[error]x"),
        ("a ##vso[task.complete]x", r"a \x23#vso[task.complete]x"),
        ("\x1b[31mred\u202edeer", r"\x1b[31mred\u202edeer"),
    ],
)
def test_what_would_do_something_is_shown(text: str, shown: str) -> None:
    assert harmless(text) == shown


@pytest.mark.parametrize(
    "text",
    ["test_x.py::test_y[a-1]", "größe [n=4]", "日本語 :: x", "cub::DeviceReduce<float>", "## heading",
     "#[x]", "a\tb",
     "::", ":: x", "👩‍💻", "%3A"],
)  # fmt: skip
def test_ordinary_names_stay_as_they_are(text: str) -> None:
    assert harmless(text) == visible(text) == text


def test_commands_print_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    assert command_line.main(["baselines", "--baselines", "/no such\n::error::folder\x1b[2J"]) == 1
    assert out.getvalue() == ""
    assert "\n\\x3a:error::folder\\x1b[2J" in err.getvalue()
