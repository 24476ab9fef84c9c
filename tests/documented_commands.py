"""Command lines of the documentation, held against the parsers of the programs that they call.

A line is wrong if its flags, values or subcommands are none of the program's.  Nothing is run.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

import pytest
from markdown_pages import ROOT

from pytest_gpuperf.cli.command_line import build_parser
from pytest_gpuperf.read_options import read_options

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = set(METADATA["project"]["optional-dependencies"])
EXTRA = re.compile(r"^(?:pytest-gpuperf|\.)\[([\w,]+)\]$")
GIT = {"-C", "worktree", "add", "bisect", "checkout", "commit", "diff", "init", "tag", "push"}
"""What the pages ask git for."""
OTHERS = {".", "gh", "set", "pre-commit"}
"""Programs of others, of which the pages show one command each."""
OF_SPLITTERS = ("--splits=", "--group=")
"""Flags of pytest-split, which need not be installed here."""
PYTHON = "before/bin/python"
"""That flags of the pages name, and that has to be there."""


class WrongCommand(Exception):
    """A command line that its program would refuse; the message says which, and why."""


def commands(script: str) -> Iterator[list[str]]:
    """Each command of a script as words, without comments."""
    script = script.replace("${{ matrix.group }}", "2").replace("\\\n", " ")
    script = re.sub(r"\$\{\{.*?\}\}", "main", script)
    for line in script.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;>")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in lexer:
            if set(word) <= set("&|;"):
                if "=" not in words[0]:  # else it gives a variable its value
                    yield words
                words = []
            else:
                words.append(word)
        if words:
            yield words[: words.index(">")] if ">" in words else words


def check(script: str, pytester: pytest.Pytester) -> int:
    """Check every command of a script; returns how many there are.  Raises ``WrongCommand``."""
    number = 0
    for number, words in enumerate(commands(script), 1):  # noqa: B007 the last one counts
        problem = problem_of(PurePath(words[0]).name or words[0], words[1:], pytester)
        if problem:
            raise WrongCommand(f"{shlex.join(words)}: {problem}")
    return number


def problem_of(program: str, words: Sequence[str], pytester: pytest.Pytester) -> str:
    """Why the program would refuse these words; empty if it would not."""
    if program in ("pytest", "gpuperf"):
        return refusal(program, words, pytester)
    if program == "pip":
        return problem_of_pip(words)
    if program == "make":
        targets = re.findall(r"^(\w[\w-]*):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        return "" if set(words) <= set(targets) else f"the Makefile has {targets}"
    if program == "git":
        if words[:2] == ["bisect", "run"]:
            check(shlex.join(words[2:]), pytester)
        return "" if words[0] in GIT else f"no rule in {Path(__file__).name} covers it"
    if program in ("python", "python3"):
        return "" if words[0] == "-m" or (ROOT / words[0]).exists() else "there is no such file"
    return "" if program in OTHERS else f"no rule in {Path(__file__).name} covers this program"


def refusal(program: str, words: Sequence[str], pytester: pytest.Pytester) -> str:
    if not (python := pytester.path / PYTHON).exists():
        python.parent.mkdir(parents=True)
        python.symlink_to(sys.executable)
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        try:
            if program == "gpuperf":
                build_parser().parse_args(words)
            else:
                own = [one for one in words if not one.startswith(OF_SPLITTERS)]
                read_options(pytester.parseconfig("-p", "no:cacheprovider", *own))
        except (pytest.UsageError, SystemExit) as error:
            return f"{error} {printed.getvalue()}"
    return ""


def problem_of_pip(words: Sequence[str]) -> str:
    if words[0] != "install":
        return "the pages install only"
    asked = {extra for word in words if (match := EXTRA.match(word)) for extra in match[1].split(",")}
    if not asked <= EXTRAS:
        return f"pyproject.toml has the extras {sorted(EXTRAS)}"
    for flag, named in itertools.pairwise(words):
        if flag == "--group" and named not in METADATA["dependency-groups"]:
            return "pyproject.toml has no such group"
        if flag == "-c" and not (ROOT / named).is_file():
            return "there is no such file"
    return ""
