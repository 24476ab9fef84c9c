"""The ``gpuperf`` command: parses arguments and hands over to the room that does the work.

Exit status: 0 done, 1 the answer is no (something needed is missing or cannot be read, pruning was refused, ``--check``
found something), 2 wrong usage, 125 and 128 of ``bisect-step`` alone, which let ``git bisect run`` skip the commit or
stop, 141 whoever read the output has closed it, as of any program that a pipe ends.  ``merge`` has that of the merged
run, and that of wrong usage where it refuses the reports.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_gpuperf.cli.argument_parser import build_parser
from pytest_gpuperf.formatting import harmless
from pytest_gpuperf.model.plugin_version import __version__

EXIT_PIPE_CLOSED = 141
"""128 and the number of SIGPIPE."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script; returns the exit status."""
    parsed = build_parser().parse_args(arguments)
    commands = {
        "doctor": _doctor, "selftest": _selftest, "explain": _explain, "prune": _prune, "mv": _mv, "migrate": _migrate,
        "resolve": _resolve, "targets": _targets, "diff": _diff, "bisect": _bisect, "bisect-step": _bisect_step,
        "report": _report, "init": _init, "examples": _examples, "docs": _docs, "history": _history,
        "comment": _comment, "plot": _plot, "merge": _merge, "audit": _audit,
    }  # fmt: skip
    try:
        status = commands[parsed.command](parsed)
        sys.stdout.flush()
    except BrokenPipeError:  # gpuperf explain ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more
        return EXIT_PIPE_CLOSED
    except ModuleNotFoundError as problem:
        if problem.name != "jinja2":
            raise
        _complain(f"gpuperf {parsed.command}: a page needs jinja2: pip install 'pytest-gpuperf[html]'")
        return 1
    return status


def _doctor(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.doctor import examination, findings, machine  # noqa: PLC0415 of this command alone

    found = examination.examine(machine.HostMachine())
    text = findings.as_json(found, __version__) if parsed.json else harmless(findings.as_text(found, __version__))
    sys.stdout.write(text)
    return 0 if findings.is_ready("static", found) else 1


def _selftest(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import selftest_command  # noqa: PLC0415 of this command alone

    try:
        return selftest_command.run(
            as_json=parsed.json, quick=parsed.quick, output=parsed.output, timer=parsed.timer, out=sys.stdout,
            err=sys.stderr,
        )  # fmt: skip
    except (*selftest_command.PROBLEMS, OSError) as problem:
        _complain(f"gpuperf selftest: {problem}")
        return 1


def _explain(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import baseline_folder, explain_command  # noqa: PLC0415 of this command alone

    wanted = explain_command.WantedWorkloads(parsed.node_id, parsed.workload)
    try:
        if parsed.baseline or parsed.baselines is not None:
            folder = baseline_folder.folder_of(parsed.baselines, Path.cwd())
            return explain_command.from_baselines(wanted.seen_from(Path.cwd(), folder.parent), folder, _write)
        return explain_command.from_last_run(wanted, Path.cwd(), _write)
    except explain_command.PROBLEMS as problem:
        _complain(f"gpuperf explain: {problem}")
        return 1


def _prune(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import collected_tests, prune_command  # noqa: PLC0415 of this command alone

    try:
        if parsed.baselines is not None:
            prune_command.require_folder(Path(parsed.baselines))
        collected = collected_tests.collect(parsed.paths, parsed.baselines)
        return prune_command.run(collected, confirmed=parsed.yes, write=_write, only_check=parsed.check)
    except prune_command.PROBLEMS as problem:
        _complain(f"gpuperf prune: {problem}")
        return 1


def _mv(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import mv_command  # noqa: PLC0415 of this command alone

    try:
        return mv_command.run(
            parsed.old, parsed.new, given=parsed.baselines, start=Path.cwd(), force=parsed.force, write=_write
        )
    except mv_command.PROBLEMS as problem:
        _complain(f"gpuperf mv: {problem}")
        return 1


def _migrate(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import migrate_command  # noqa: PLC0415 of this command alone

    try:
        return migrate_command.run(given=parsed.baselines, start=Path.cwd(), write=_write)
    except migrate_command.PROBLEMS as problem:
        _complain(f"gpuperf migrate: {problem}")
        return 1


def _targets(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import targets_command  # noqa: PLC0415 of this command alone

    try:
        return targets_command.run(parsed.action, parsed.names, given=parsed.baselines, start=Path.cwd(), write=_write)
    except targets_command.PROBLEMS as problem:
        _complain(f"gpuperf targets: {problem}")
        return 1


def _resolve(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import resolve_command  # noqa: PLC0415 of this command alone

    try:
        return resolve_command.run(given=parsed.baselines, start=Path.cwd(), write=_write)
    except resolve_command.PROBLEMS as problem:
        _complain(f"gpuperf resolve: {problem}")
        return 1


def _diff(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import diff_command  # noqa: PLC0415 of this command alone

    revisions = [revision for revision in (parsed.before, parsed.after) if revision is not None]
    try:
        return diff_command.run(
            revisions, given=parsed.baselines, start=Path.cwd(), markdown=parsed.markdown, whole=parsed.all,
            files=parsed.files, write=_write,
        )  # fmt: skip
    except diff_command.PROBLEMS as problem:
        _complain(f"gpuperf diff: {problem}")
        return 1


def _bisect(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import bisect_command  # noqa: PLC0415 of this command alone

    try:
        return bisect_command.run(parsed.node_id, good=parsed.good, bad=parsed.bad, start=Path.cwd(), write=_at_once)
    except bisect_command.PROBLEMS as problem:
        _complain(f"gpuperf bisect: {problem}")
        return 1


def _bisect_step(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import bisect_command  # noqa: PLC0415 of this command alone

    try:
        return bisect_command.step(parsed.node_id, good=parsed.good, start=Path.cwd(), write=_at_once)
    except bisect_command.PROBLEMS as problem:
        _complain(f"gpuperf bisect-step: {problem}")
        return bisect_command.EXIT_ABORT


def _report(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import report_command  # noqa: PLC0415 of this command alone

    try:
        return report_command.run(parsed.report, parsed.files, start=Path.cwd(), write=_write)
    except report_command.PROBLEMS as problem:
        _complain(f"gpuperf report: {problem}")
        return 1


def _init(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import init_command  # noqa: PLC0415 of this command alone

    try:
        return init_command.run(parsed.folder, write=_write)
    except OSError as problem:
        _complain(f"gpuperf init: {problem}")
        return 1


def _examples(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import examples_command  # noqa: PLC0415 of this command alone

    try:
        return examples_command.run(parsed.folder, parsed.families, write=_write)
    except examples_command.PROBLEMS as problem:
        _complain(f"gpuperf examples: {problem}")
        return 1


def _docs(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import docs_command  # noqa: PLC0415 of this command alone

    try:
        return docs_command.run(parsed.page, write=_write)
    except docs_command.PROBLEMS as problem:
        _complain(f"gpuperf docs: {problem}")
        return 1


def _history(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import history_command  # noqa: PLC0415 of this command alone

    try:
        return history_command.run(
            parsed.node_id, given=parsed.baselines, start=Path.cwd(), files=parsed.output, reports=parsed.report,
            write=_write,
        )  # fmt: skip
    except history_command.PROBLEMS as problem:
        _complain(f"gpuperf history: {problem}")
        return 1


def _merge(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import merge_command  # noqa: PLC0415 of this command alone

    files = {".html": parsed.html, ".md": parsed.markdown, ".json": parsed.json}
    try:
        return merge_command.run(parsed.reports, files, write=sys.stdout.write)
    except merge_command.PROBLEMS as problem:
        sys.stderr.write(f"gpuperf merge: {problem}\n")
        return merge_command.EXIT_REFUSED


def _plot(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import plot_command  # noqa: PLC0415 of this command alone

    try:
        return plot_command.run(
            parsed.node_id, x=parsed.x, y=parsed.y, report=parsed.report, output=parsed.output, start=Path.cwd(),
            write=_write,
        )  # fmt: skip
    except plot_command.PROBLEMS as problem:
        _complain(f"gpuperf plot: {problem}")
        return 1


def _comment(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import comment_command  # noqa: PLC0415 of this command alone

    try:
        return comment_command.run(parsed.report, parsed.name, write=_write)
    except comment_command.PROBLEMS as problem:
        _complain(f"gpuperf comment: {problem}")
        return 1


def _audit(parsed: argparse.Namespace) -> int:
    from pytest_gpuperf.cli import audit_command  # noqa: PLC0415 of this command alone

    flags = {name: getattr(parsed, name) for name in audit_command.AuditRequest._fields}
    try:
        return audit_command.run(audit_command.AuditRequest(**flags), start=Path.cwd(), write=_write)
    except audit_command.PROBLEMS as problem:
        _complain(f"gpuperf audit: {problem}")
        return audit_command.EXIT_UNREADABLE


def _write(text: str) -> object:
    """Print text whose names and words others may have had a hand in."""
    return sys.stdout.write(harmless(text))


def _complain(text: str) -> None:
    sys.stderr.write(harmless(text) + "\n")


def _at_once(text: str) -> None:
    """Print what takes long to come line by line."""
    _write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
