"""What the ``gpuperf`` command takes: one table of subcommands and their arguments."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from pytest_gpuperf.cli import baselines_command
from pytest_gpuperf.model.plugin_version import __version__
from pytest_gpuperf.model.timer_names import TIMERS

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

PAGES = {
    "audit": "audit", "baselines": "accepting-changes", "bisect": "bisect", "bisect-step": "bisect",
    "comment": "reports", "diff": "accepting-changes", "doctor": "ci", "examples": "first-regression",
    "explain": "why-slower", "history": "history", "init": "first-regression", "merge": "scaling", "plot": "reports",
    "report": "reports", "selftest": "selftest",
}  # fmt: skip
"""Of the documentation, by command."""


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command; wrong usage ends the process with status 2, and names the nearest command or flag."""
    parser, commands = _built()
    named = words[0] if words else "-"
    if not named.startswith("-") and named not in commands.choices:
        near = _near([named], commands.choices) or ": gpuperf --help lists all"
        parser.error(f"there is no command {named!r}{near}")
    parsed, unknown = parser.parse_known_args(words)
    if unknown:
        command = commands.choices[parsed.command]
        near = _near(unknown, re.findall(r"--[a-z-]+", command.format_usage()))
        command.error(f"unrecognized arguments: {' '.join(unknown)}{near}")
    return parsed


def _near(words: Iterable[str], known: Iterable[str]) -> str:
    """A question after the name that is nearest to one of ``words``; empty if none is near."""
    names = list(known)
    near = [name for word in words for name in difflib.get_close_matches(word.partition("=")[0], names, n=1)]
    return f": did you mean {', '.join(dict.fromkeys(near))}?" if near else ""


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands, for pages that list them."""
    return _built()[0]


def _built() -> tuple[argparse.ArgumentParser, Commands]:
    parser = argparse.ArgumentParser(
        prog="gpuperf", description="Commands beside the pytest-gpuperf plugin, whose own flags pytest --help lists."
    )
    parser.add_argument("--version", action="version", version=f"gpuperf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (_add_beginnings, _add_looks, _add_audit, _add_bisection, _add_reports, _add_records):
        add(commands)
    return parser, commands


def _command(commands: Commands, name: str, says: str) -> argparse.ArgumentParser:
    """A subcommand whose own ``--help`` repeats what it does, and names the page that says more."""
    page = PAGES.get(name)
    return commands.add_parser(
        name, help=says, description=f"{says[:1].upper()}{says[1:]}.",
        epilog=f"gpuperf docs {page} says more." if page else None,
    )  # fmt: skip


def _add_looks(commands: Commands) -> None:
    selftest = _command(commands, "selftest", "find out, on the GPU, what this machine can gate (about four minutes)")
    selftest.add_argument("--quick", action="store_true", help="fewer comparisons: within a minute")
    selftest.add_argument("--json", metavar="FILE", type=Path, help="also write the report to this file, as JSON")
    selftest.add_argument("--timer", choices=TIMERS, help="the clock (default: each that works here)")

    explain = _command(
        commands, "explain", "say what holds a workload back and why it changed, from the last run or a baseline"
    )
    explain.add_argument("node_id", metavar="NODEID", help="a test, class or module, as pytest names it or by its path")
    explain.add_argument("workload", metavar="WORKLOAD", nargs="?", help="one workload of the test (default: all)")
    explain.add_argument("--baseline", action="store_true", help="read the committed baselines, not the last run")
    _add_folder(explain)

    diff = _command(commands, "diff", "say what a change of the baselines means, kernel by kernel, from git")
    diff.add_argument("before", metavar="REV", nargs="?", help="the commit to compare with (default: HEAD)")
    diff.add_argument("after", metavar="REV", nargs="?", help="the commit that is compared (default: the working tree)")
    diff.add_argument("--markdown", action="store_true", help="tables for a pull request, at most 60,000 characters")
    diff.add_argument(
        "--output", dest="files", metavar="FILE", type=Path, action="append", default=[],
        help="a file that ends in .html or .md; may be given again (default: text to the terminal)",
    )  # fmt: skip
    diff.add_argument("--all", action="store_true", help="the time of every workload, not the slowest of each kernel")
    _add_folder(diff)


def _add_records(commands: Commands) -> None:
    words = "list what is on record, let records follow a renaming, remove some"
    baselines_command.arguments(_command(commands, "baselines", words))


def _add_bisection(commands: Commands) -> None:
    bisect = _command(commands, "bisect", "find the commit that made a test's kernels slower")
    bisect.add_argument("node_id", metavar="NODEID", help="a test, file or folder, as pytest takes it")
    bisect.add_argument("--good", metavar="REF", help="a commit that is not slower (default: where it was recorded)")
    bisect.add_argument("--bad", metavar="REF", default="HEAD", help="a commit that is slower (default: HEAD)")

    step = _command(commands, "bisect-step", "judge the working tree for git bisect run: 0 good, 1 bad, 125 skip")
    step.add_argument("node_id", metavar="NODEID", help="a test, file or folder, as pytest takes it")
    step.add_argument("--good", metavar="REF", required=True, help="what the working tree is compared with")


def _add_reports(commands: Commands) -> None:
    history = _command(commands, "history", "show times and registers over the commits of the baselines")
    history.add_argument("node_id", metavar="NODEID", nargs="?", default="", help="test, file or folder (default: all)")
    history.add_argument(
        "--output", metavar="FILE", type=Path, action="append", default=[],
        help="a file that ends in .html, .csv, .bmf.json (Bencher) or .gab.json (github-action-benchmark)",
    )  # fmt: skip
    history.add_argument(
        "--report", metavar="JSON", type=Path, action="append", default=[],
        help="a report of --gpuperf-report, as one more point; may be given again",
    )  # fmt: skip
    _add_folder(history)

    report = _command(commands, "report", "make a page or Markdown of a run, by its report in JSON")
    report.add_argument("report", metavar="JSON", nargs="?", type=Path, help="the report (default: the last run here)")
    report.add_argument(
        "--output", dest="files", metavar="FILE", type=Path, action="append", default=[],
        help="a file that ends in .html, .md or .json; may be given again (default: Markdown to the terminal)",
    )  # fmt: skip

    merge = _command(commands, "merge", "make one report and one exit status of the reports of all shards of a run")
    merge.add_argument("reports", metavar="JSON", nargs="+", type=Path, help="what --gpuperf-report=FILE.json wrote")
    for form, metavar in (("html", "HTML"), ("markdown", "MD"), ("json", "JSON")):
        merge.add_argument(f"--{form}", metavar=metavar, type=Path, help=f"write the whole run's report as {metavar}")

    plot = _command(commands, "plot", "draw the workloads of a parametrised test over one of its parameters")
    plot.add_argument("node_id", metavar="NODEID", help="a test, as pytest names it without parameters")
    plot.add_argument("--x", required=True, metavar="PARAMETER", help="the parameter to draw over")
    plot.add_argument("--y", choices=("time", "bandwidth", "flops"), default="time", help="default: time")
    plot.add_argument("--report", metavar="JSON", type=Path, help="of --gpuperf-report (default: the last run here)")
    plot.add_argument("--output", metavar="HTML", type=Path, help="a page with the curves (default: a table alone)")

    comment = _command(commands, "comment", "make or update the comment of a pull or merge request, in CI")
    comment.add_argument("report", metavar="MD", type=Path, help="what --gpuperf-report=FILE.md wrote")
    comment.add_argument("--name", default="kernels", help="tells comments of several jobs apart (default: kernels)")


def _add_beginnings(commands: Commands) -> None:
    doctor = _command(commands, "doctor", "say what this machine can measure, what is missing and what to do")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")

    init = _command(commands, "init", "write a first test, settings and a CI workflow into a repository")
    init.add_argument("folder", metavar="DIR", nargs="?", type=Path, default=Path(), help="default: the current folder")

    examples = _command(commands, "examples", "copy kernels of the example suite with their tests, to break them")
    examples.add_argument("folder", metavar="DIR", nargs="?", type=Path, help="where to (default: list the families)")
    examples.add_argument("families", metavar="FAMILY", nargs="*", help="default: a few that teach most")

    docs = _command(commands, "docs", "print a page of the documentation")
    docs.add_argument("page", metavar="PAGE", nargs="?", help="a page, by its name or path (default: list all pages)")


def _add_audit(commands: Commands) -> None:
    audit = _command(commands, "audit", "gate the machine code of wheels and libraries that are already built")
    audit.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a .whl, .so, .o, .a, .fatbin or .cubin")
    held = audit.add_mutually_exclusive_group()
    held.add_argument("--baseline", metavar="FILE", type=Path, help="what is on record, such as gpuperf-audit.json.xz")
    held.add_argument(
        "--against", metavar="FILE", type=Path, action="append", default=[],
        help="another build of the file, such as the version before; may be given again for several",
    )  # fmt: skip
    audit.add_argument("--update", action="store_true", help="write what the files hold to that of --baseline")
    audit.add_argument(
        "--skip", metavar="PATTERN", action="append", default=[],
        help="files in a wheel that are left out: '*/libvendored*.so'; may be given again",
    )  # fmt: skip
    audit.add_argument("--max-size", metavar="SIZE", type=_size, help="of all machine code of a FILE, such as 40M")
    audit.add_argument("--max-kernel-size", metavar="SIZE", type=_size, help="of one kernel, such as 64K")
    for form in ("json", "markdown"):
        audit.add_argument(f"--{form}", metavar="FILE", type=Path, help=f"also write what differs, as {form}")
    audit.add_argument(
        "--baselines",
        metavar="DIR",
        type=Path,
        help="baselines that say which tests have a kernel (default: as in the last run)",
    )


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--baselines", metavar="DIR", type=Path, help="baselines folder (default: as in the last run)")


def _size(text: str) -> int:
    """``40M`` as 40,000,000 bytes."""
    unit = {"K": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:].upper())
    try:
        size = int(float(text[:-1]) * unit) if unit is not None else int(text)
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: 40M, 64K")
    return size
