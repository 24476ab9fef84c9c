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
from collections.abc import Callable, Iterator, Sequence
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
GIT = {"add", "bisect", "checkout", "commit", "diff", "init"}
"""What the pages ask git for."""
VALUES = {
    "${{ matrix.group }}": "2",
}
"""What the programs of other people put in the places of the pages' variables."""
OF_SPLITTERS = ("--splits=", "--group=")
"""Flags of pytest-split, which need not be installed here."""
FOLDERS = ("nvrtcs/13.2.86",)
"""That flags of the pages name, and that have to be there."""


class WrongCommand(Exception):
    """A command line that its program would refuse; the message says which, and why."""


def commands(script: str) -> Iterator[list[str]]:
    """Each command of a script as words, without comments."""
    for variable, value in VALUES.items():
        script = script.replace(variable, value)
    script = re.sub(r"\$\{\{.*?\}\}", "main", script.replace("\\\n", " "))
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
    for number, (program, *arguments) in enumerate(commands(script), 1):  # noqa: B007 the last one counts
        checker = PROGRAMS.get(PurePath(program).name or program)
        if checker is None:
            raise WrongCommand(f"{program}: no rule in {Path(__file__).name} covers this program")
        checker(arguments, pytester)
    return number


def _pytest(arguments: Sequence[str], pytester: pytest.Pytester) -> None:
    for folder in FOLDERS:
        (pytester.path / folder).mkdir(parents=True, exist_ok=True)
    said = io.StringIO()
    own = [one for one in arguments if not one.startswith(OF_SPLITTERS)]
    try:
        with contextlib.redirect_stderr(said):
            read_options(pytester.parseconfig("-p", "no:cacheprovider", *own))
    except (pytest.UsageError, SystemExit) as refusal:
        raise WrongCommand(f"pytest {shlex.join(arguments)}: {refusal} {said.getvalue()}") from None


def _gpuperf(arguments: Sequence[str], pytester: pytest.Pytester) -> None:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            build_parser().parse_args(arguments)
    except SystemExit:
        raise WrongCommand(f"gpuperf {shlex.join(arguments)}: {said.getvalue()}") from None


def _pip(arguments: Sequence[str], pytester: pytest.Pytester) -> None:
    if arguments[0] != "install":
        raise WrongCommand(f"pip {arguments[0]}: the pages install only")
    for word in arguments:
        extras = EXTRA.match(word)
        if extras and not set(extras[1].split(",")) <= EXTRAS:
            raise WrongCommand(f"{word}: pyproject.toml has the extras {sorted(EXTRAS)}")
    for flag, named in itertools.pairwise(arguments):
        if flag == "--group" and named not in METADATA["dependency-groups"]:
            raise WrongCommand(f"--group {named}: pyproject.toml has no such group")
        if flag == "-c" and not (ROOT / named).is_file():
            raise WrongCommand(f"-c {named}: there is no such file")


def _make(arguments: Sequence[str], pytester: pytest.Pytester) -> None:
    targets = re.findall(r"^(\w[\w-]*):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for target in arguments:
        if target not in targets:
            raise WrongCommand(f"make {target}: the Makefile has {targets}")


def _git(arguments: Sequence[str], pytester: pytest.Pytester) -> None:
    if arguments[0] not in GIT:
        raise WrongCommand(f"git {arguments[0]}: no rule in {Path(__file__).name} covers it")
    if arguments[:2] == ["bisect", "run"]:
        check(shlex.join(arguments[2:]), pytester)


def _python(arguments: Sequence[str], pytester: pytest.Pytester) -> None:
    if arguments[0] != "-m" and not (ROOT / arguments[0]).exists():
        raise WrongCommand(f"python {arguments[0]}: there is no such file")


def _of_others(arguments: Sequence[str], pytester: pytest.Pytester) -> None:
    """Programs of others, of which the pages show one command each."""


PROGRAMS: dict[str, Callable[[Sequence[str], pytest.Pytester], None]] = {
    "pytest": _pytest, "gpuperf": _gpuperf, "pip": _pip, "make": _make, "git": _git, "python": _python,
    "python3": _python, ".": _of_others, "gh": _of_others, "set": _of_others, "pre-commit": _of_others,
}  # fmt: skip
