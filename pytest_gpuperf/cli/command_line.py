"""The ``gpuperf`` command: parses arguments and hands over to the room that does the work.

Exit status: 0 done, 1 the answer is no (something needed is missing or cannot be read, pruning was refused, ``--check``
found something), 2 wrong usage, 141 whoever read the output has closed it, as of any program that a pipe ends.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_gpuperf.model.plugin_version import __version__
from pytest_gpuperf.model.timer_names import TIMERS

EXIT_PIPE_CLOSED = 141
"""128 and the number of SIGPIPE."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script; returns the exit status."""
    parsed = build_parser().parse_args(arguments)
    commands = {
        "doctor": _doctor, "selftest": _selftest, "explain": _explain, "prune": _prune, "mv": _mv, "migrate": _migrate,
        "resolve": _resolve, "targets": _targets, "diff": _diff, "bisect": _bisect, "bisect-step": _bisect_step,
    }  # fmt: skip
    try:
        status = commands[parsed.command](parsed)
        sys.stdout.flush()
    except BrokenPipeError:  # gpuperf explain ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more
        return EXIT_PIPE_CLOSED
    return status


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpuperf", description="Companion of the pytest-gpuperf plugin.")
    parser.add_argument("--version", action="version", version=f"gpuperf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    doctor = commands.add_parser("doctor", help="say what this machine can measure, what is missing and what to do")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")

    selftest = commands.add_parser(
        "selftest", help="find out, on the GPU, what this machine can gate (about four minutes)"
    )
    selftest.add_argument("--json", action="store_true", help="print the report as JSON")
    selftest.add_argument("--quick", action="store_true", help="fewer processes and verdicts: half a minute")
    selftest.add_argument("--output", metavar="FILE", type=Path, help="write the report to this file too, as JSON")
    selftest.add_argument("--timer", choices=TIMERS, help="default: the best that works here")

    explain = commands.add_parser(
        "explain", help="say what holds a workload back and why it changed, from the last run or a baseline"
    )
    explain.add_argument("node_id", metavar="NODEID", help="a test, class or module, as pytest names it or by its path")
    explain.add_argument("workload", nargs="?", help="one workload of the test (default: all)")
    explain.add_argument("--baseline", action="store_true", help="read the committed baselines, not the last run")
    explain.add_argument("--baselines", metavar="DIR", type=Path, help="their folder (default: as in the last run)")

    prune = commands.add_parser("prune", help="name baselines whose tests are gone; remove them with --yes")
    prune.add_argument("paths", nargs="*", help="test files and folders to look at (default: pytest's own)")
    either = prune.add_mutually_exclusive_group()
    either.add_argument("--yes", action="store_true", help="remove what is named")
    either.add_argument("--check", action="store_true", help="exit status 1 if there is anything to prune; for CI")
    prune.add_argument("--baselines", metavar="DIR", help="folder of the baselines (default: as configured for pytest)")

    mv = commands.add_parser("mv", help="let the records of a renamed test, test file or workload follow it")
    mv.add_argument("old", metavar="OLD", help="a test file, a node id, or a node id and ' [workload]', as on record")
    mv.add_argument("new", metavar="NEW", help="what it is called now")
    mv.add_argument("--force", action="store_true", help="overwrite records that have the new name already")
    mv.add_argument("--baselines", metavar="DIR", type=Path, help="their folder (default: as in the last run)")

    targets = commands.add_parser("targets", help="list, add or remove what the team gates: the manifest")
    targets.add_argument("action", nargs="?", choices=("list", "add", "remove"), default="list", help="default: list")
    targets.add_argument("names", nargs="*", metavar="NAME", help="sm_90, nvidia-h200, or a compiler: 'nvrtc 13.0.88'")
    targets.add_argument("--baselines", metavar="DIR", type=Path, help="their folder (default: as in the last run)")

    migrate = commands.add_parser("migrate", help="rewrite baselines of an older schema in the current one")
    migrate.add_argument("--baselines", metavar="DIR", type=Path, help="their folder (default: as in the last run)")

    resolve = commands.add_parser("resolve", help="merge baselines that are in conflict, and say what to record anew")
    resolve.add_argument("--baselines", metavar="DIR", type=Path, help="their folder (default: as in the last run)")

    diff = commands.add_parser("diff", help="say what a change of the baselines means, kernel by kernel, from git")
    diff.add_argument("before", metavar="REV", nargs="?", help="the commit to compare with (default: HEAD)")
    diff.add_argument("after", metavar="REV", nargs="?", help="the commit that is compared (default: the working tree)")
    diff.add_argument("--markdown", action="store_true", help="tables for a pull request, at most 60,000 characters")
    diff.add_argument("--all", action="store_true", help="the time of every workload, not the slowest of each kernel")
    diff.add_argument("--baselines", metavar="DIR", type=Path, help="their folder (default: as in the last run)")

    bisect = commands.add_parser("bisect", help="find the commit that made a test's kernels slower")
    bisect.add_argument("node_id", metavar="NODEID", help="a test, file or folder, as pytest takes it")
    bisect.add_argument("--good", metavar="REF", help="where it was not slower (default: where it was recorded)")
    bisect.add_argument("--bad", metavar="REF", default="HEAD", help="where it is (default: HEAD)")

    step = commands.add_parser("bisect-step", help="judge the working tree for git bisect run: 0 good, 1 bad, 125 skip")
    step.add_argument("node_id", metavar="NODEID", help="a test, file or folder, as pytest takes it")
    step.add_argument("--good", metavar="REF", required=True, help="what the working tree is compared with")
    return parser


def _doctor(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.doctor import examination, findings, machine  # noqa: PLC0415 of this command alone

    found = examination.examine(machine.HostMachine())
    sys.stdout.write((findings.as_json if parsed.json else findings.as_text)(found, __version__))
    return 0 if findings.is_ready("static", found) else 1


def _selftest(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import selftest_command  # noqa: PLC0415 of this command alone

    try:
        return selftest_command.run(
            as_json=parsed.json, quick=parsed.quick, output=parsed.output, timer=parsed.timer, out=sys.stdout,
            err=sys.stderr,
        )  # fmt: skip
    except (*selftest_command.PROBLEMS, OSError) as problem:
        sys.stderr.write(f"gpuperf selftest: {problem}\n")
        return 1


def _explain(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import baseline_folder, explain_command  # noqa: PLC0415 of this command alone

    wanted = explain_command.WantedWorkloads(parsed.node_id, parsed.workload)
    try:
        if parsed.baseline or parsed.baselines is not None:
            folder = baseline_folder.folder_of(parsed.baselines, Path.cwd())
            return explain_command.from_baselines(wanted.seen_from(Path.cwd(), folder.parent), folder, sys.stdout.write)
        return explain_command.from_last_run(wanted, Path.cwd(), sys.stdout.write)
    except explain_command.PROBLEMS as problem:
        sys.stderr.write(f"gpuperf explain: {problem}\n")
        return 1


def _prune(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import collected_tests, prune_command  # noqa: PLC0415 of this command alone

    try:
        if parsed.baselines is not None:
            prune_command.require_folder(Path(parsed.baselines))
        collected = collected_tests.collect(parsed.paths, parsed.baselines)
        return prune_command.run(collected, confirmed=parsed.yes, write=sys.stdout.write, only_check=parsed.check)
    except prune_command.PROBLEMS as problem:
        sys.stderr.write(f"gpuperf prune: {problem}\n")
        return 1


def _mv(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import mv_command  # noqa: PLC0415 of this command alone

    try:
        return mv_command.run(
            parsed.old, parsed.new, given=parsed.baselines, start=Path.cwd(), force=parsed.force, write=sys.stdout.write
        )
    except mv_command.PROBLEMS as problem:
        sys.stderr.write(f"gpuperf mv: {problem}\n")
        return 1


def _migrate(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import migrate_command  # noqa: PLC0415 of this command alone

    try:
        return migrate_command.run(given=parsed.baselines, start=Path.cwd(), write=sys.stdout.write)
    except migrate_command.PROBLEMS as problem:
        sys.stderr.write(f"gpuperf migrate: {problem}\n")
        return 1


def _targets(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import targets_command  # noqa: PLC0415 of this command alone

    try:
        return targets_command.run(
            parsed.action, parsed.names, given=parsed.baselines, start=Path.cwd(), write=sys.stdout.write
        )
    except targets_command.PROBLEMS as problem:
        sys.stderr.write(f"gpuperf targets: {problem}\n")
        return 1


def _resolve(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import resolve_command  # noqa: PLC0415 of this command alone

    try:
        return resolve_command.run(given=parsed.baselines, start=Path.cwd(), write=sys.stdout.write)
    except resolve_command.PROBLEMS as problem:
        sys.stderr.write(f"gpuperf resolve: {problem}\n")
        return 1


def _diff(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import diff_command  # noqa: PLC0415 of this command alone

    revisions = [revision for revision in (parsed.before, parsed.after) if revision is not None]
    try:
        return diff_command.run(
            revisions, given=parsed.baselines, start=Path.cwd(), markdown=parsed.markdown, whole=parsed.all,
            write=sys.stdout.write,
        )  # fmt: skip
    except diff_command.PROBLEMS as problem:
        sys.stderr.write(f"gpuperf diff: {problem}\n")
        return 1


def _bisect(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import bisect_command  # noqa: PLC0415 of this command alone

    try:
        return bisect_command.run(parsed.node_id, good=parsed.good, bad=parsed.bad, start=Path.cwd(), write=_at_once)
    except bisect_command.PROBLEMS as problem:
        sys.stderr.write(f"gpuperf bisect: {problem}\n")
        return 1


def _bisect_step(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import bisect_command  # noqa: PLC0415 of this command alone

    try:
        return bisect_command.step(parsed.node_id, good=parsed.good, start=Path.cwd(), write=_at_once)
    except bisect_command.PROBLEMS as problem:
        sys.stderr.write(f"gpuperf bisect-step: {problem}\n")
        return bisect_command.EXIT_ABORT


def _at_once(text: str) -> None:
    """Print what takes long to come line by line."""
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
