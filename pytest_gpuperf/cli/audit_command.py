"""``gpuperf audit``: the static gate for files that are already built, against a baseline or another build."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path, PurePosixPath

from pytest_gpuperf.atomic_write import scratch_folder
from pytest_gpuperf.cli import audit_file
from pytest_gpuperf.cli.audit_file import Builds
from pytest_gpuperf.cli.audited_pairs import AuditedPairs, compared
from pytest_gpuperf.compile.machine_code.audited import AuditedKernel, read_built
from pytest_gpuperf.compile.machine_code.containers import group_of
from pytest_gpuperf.compile.machine_code.symbols import names_of
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.report.audit_rows import MOST_IN_FILE, MOST_KERNELS, contents_of, listed, modules_of, short_name
from pytest_gpuperf.report.diff import diff_lines, diff_markdown
from pytest_gpuperf.report.files import NotWritten, why_not_written, write_file

EXIT_REGRESSED, EXIT_UNKNOWN = 1, 2
NOTHING_COMPARED = (
    "nothing was compared: no kernel is on both sides, and a gate without a comparison would always be green. Name the "
    "other build of these files; a baseline takes them by --update\n"
)
UNREAD = "{} compared by registers, stack, memory and size alone, without their instructions"


class AuditRefused(GpuperfError):
    """The flags or the files do not fit together; the message says what to do."""


PROBLEM_STATUS = EXIT_UNKNOWN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a .whl, .so, .o, .a, .fatbin or .cubin")
    held = parser.add_mutually_exclusive_group()
    held.add_argument("--baseline", metavar="FILE", type=Path, help="the recorded audit, such as gpuperf-audit.json.xz")
    held.add_argument(
        "--against", metavar="FILE", type=Path, action="append", default=[],
        help="another build of the file, such as the version before; may be given again for several",
    )  # fmt: skip
    parser.add_argument("--update", action="store_true", help="write what the files hold to that of --baseline")
    parser.add_argument(
        "--skip", metavar="PATTERN", action="append", default=[],
        help="files in a wheel that are left out: '*/libvendored*.so'; may be given again",
    )  # fmt: skip
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="also write what differs, as Markdown")


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Read the files, compare them with what they are held against, and print what differs.

    Returns the exit status: 0, 1 if a kernel got worse or a size is beyond its budget, or 2 if a file cannot be read or
    no kernel could be compared; an update takes all.
    Raises ``GpuperfError`` and ``OSError``.
    """
    recorded = _recorded(parsed.baseline, update=parsed.update)
    compares = recorded is not None or bool(parsed.against)
    if not compares and parsed.markdown:
        raise AuditRefused("--markdown writes what differs: name what from, by --against or --baseline")
    with scratch_folder("gpuperf-audit-") as scratch:
        new, unread = _read_all(parsed.files, Path(scratch, "new"), parsed.skip)
        old, unread_too = _read_all(parsed.against, Path(scratch, "old"), parsed.skip)
        old = old or recorded or {}
        before = _counterparts(old, new, both_whole=bool(parsed.against))
        found = compared(
            [one for name, was in before.items() for one in _labelled(old[was], name)],
            [one for name in before for one in _labelled(new[name], name)],
        )
    if compares:
        _report(found, parsed, write)
    _write_new({name: new[name] for name in new if name not in before}, compares, write)
    if unread + unread_too:
        _write_unread(unread + unread_too, write)
        return EXIT_UNKNOWN
    if parsed.update:
        _update(parsed.baseline, recorded or {}, {before.get(name, name): new[name] for name in new}, write)
        return 0
    if compares and not found.pairs:
        write(NOTHING_COMPARED)
        return EXIT_UNKNOWN
    return EXIT_REGRESSED if Verdict.WORSE in found.counts() else 0


def _recorded(baseline: Path | None, *, update: bool) -> Builds | None:
    """What the baseline has; None without one."""
    if baseline is None:
        if update:
            raise AuditRefused("--update does not say which file to write: name it with --baseline FILE")
        return None
    found = audit_file.read(baseline)
    if found is None and not update:
        raise AuditRefused(f"{baseline}: there is no such file yet: --update writes it")
    return found


def _read_all(files: Sequence[Path], folder: Path, skip: Sequence[str]) -> tuple[Builds, list[str]]:
    """The kernels of each of the files, by its path from here without versions and tags; and what was not read."""
    found: Builds = {}
    unread: list[str] = []
    for number, file in enumerate(files):
        name = (PurePosixPath(Path(os.path.relpath(file.parent)).as_posix()) / group_of(file)).as_posix()
        if name in found:
            raise AuditRefused(f"{file}: another of the files is called {name} too: audit them one at a time")
        into = folder / str(number)
        into.mkdir(parents=True)
        found[name], problems = read_built(file, into, skip)
        unread += problems
    return found, unread


def _counterparts(old: Collection[str], new: Collection[str], *, both_whole: bool) -> dict[str, str]:
    """The old names by the new ones: the same name, else the only one in another folder.

    ``both_whole``: each needs one, and of one and one it may have any name.  Raises ``AuditRefused`` where one lacks.
    """
    if both_whole and len(old) == len(new) == 1:
        return dict(zip(new, old, strict=True))
    found = {name: name for name in new if name in old}
    for name in new:
        elsewhere = [one for one in old if one not in found.values() and Path(one).name == Path(name).name]
        if name not in found and len(elsewhere) == 1:
            found[name] = elsewhere[0]
    missing = sorted((set(new) - set(found)) | (set(old) - set(found.values()))) if both_whole else []
    if missing:
        raise AuditRefused(
            f"only one side has {', '.join(missing)}: with several files each needs its other build (--against)"
        )
    return {name: found[name] for name in new if name in found}


def _labelled(kernels: Iterable[AuditedKernel], name: str) -> list[AuditedKernel]:
    """The kernels with the path of their file from here: those in a wheel as if they lay beside it."""
    folder = PurePosixPath(name).parent
    return [one._replace(file=(folder / one.file).as_posix() if one.file else name) for one in kernels]


def _report(found: AuditedPairs, parsed: argparse.Namespace, write: Callable[[str], object]) -> None:
    """Print what differs, and write the files that were asked for."""
    changed = [pair.judgement for pair in found.pairs if pair.judgement.verdict is not Verdict.UNCHANGED]
    others = [*found.new, *found.gone, *(kernel for pair in found.renamed for kernel in pair)]
    names = names_of(dict.fromkeys([one.key.workload for one in changed] + [one.record.kernel for one in others]))
    shown = {symbol: short_name(name) for symbol, name in names.items()}
    renamed = ((shown[old.record.kernel], shown[new.record.kernel]) for old, new in found.renamed)
    remarks = [
        *found.whole,
        *listed("renamed, with equal code", (f"{old} -> {new}" for old, new in renamed if old != new)),
        *listed("new", (shown[one.record.kernel] for one in found.new)),
        *listed("gone", (shown[one.record.kernel] for one in found.gone)),
        *([UNREAD.format(numbered(found.unread, "changed kernel"))] if found.unread else []),
    ]
    counts = (f"{count} {verdict.value}" for verdict, count in found.counts().items())
    summary = ", ".join(counts) or "no kernel was there before"
    write("\n".join(diff_lines(modules_of(changed, names, MOST_KERNELS), remarks, summary)) + "\n")
    if parsed.markdown is not None:
        modules = modules_of(changed, names, MOST_IN_FILE)
        page = diff_markdown("Audit of machine code", modules, remarks, summary, column="verdict")
        write_file("audit", parsed.markdown, page.encode())


def _write_new(files: Builds, compares: bool, write: Callable[[str], object]) -> None:
    """Print what is in files that nothing is held against."""
    for name, kernels in files.items():
        heading = [f"{name} is new here:"] if compares else []
        lines = contents_of((f"{one.file} for {one.arch}", one.record.profile) for one in _labelled(kernels, name))
        write("\n".join([*heading, *lines]) + "\n")


def _write_unread(unread: Sequence[str], write: Callable[[str], object]) -> None:
    them = "it" if len(unread) == 1 else "them"
    words = f"{numbered(len(unread), 'file')} not read, of which nothing is known: --skip PATTERN leaves {them} out"
    write("".join(f"{line}\n" for line in (*unread, words)))


def _update(path: Path, recorded: Builds, builds: Builds, write: Callable[[str], object]) -> None:
    """Put the kernels on record; files that were not named stay on record."""
    try:
        written = audit_file.write(path, {**recorded, **builds})
    except OSError as problem:
        raise NotWritten(why_not_written("baseline", path, problem)) from problem
    write(f"{'written' if written else 'up to date'}: {path}\n")
