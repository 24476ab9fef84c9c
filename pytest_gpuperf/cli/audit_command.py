"""``gpuperf audit``: the static gate for files that are already built, against a baseline or another build."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.atomic_write import scratch_folder
from pytest_gpuperf.baselines import audit_file
from pytest_gpuperf.baselines.baseline_errors import BaselineError, quoted
from pytest_gpuperf.baselines.lookup import KernelTests, kernel_tests
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.audited_changes import Code, Looked, look_closer
from pytest_gpuperf.cli.baseline_folder import NoFolderError, folder_of
from pytest_gpuperf.compile.compile_errors import CompileProblem
from pytest_gpuperf.compile.cubin.audited import Built, read_built, record_of
from pytest_gpuperf.compile.cubin.built_files import group_of
from pytest_gpuperf.compile.cubin.demangled_names import names_of
from pytest_gpuperf.compile.cubin.stable_names import kernel_key
from pytest_gpuperf.formatting import numbered, quantity
from pytest_gpuperf.judge.audit import compared, counts, joined
from pytest_gpuperf.model.audited_kernel import Files
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.report.audit_rows import as_json, contents_of, modules_of, remarks_of, summary_of
from pytest_gpuperf.report.diff_markdown import diff_markdown
from pytest_gpuperf.report.diff_text import diff_lines
from pytest_gpuperf.report.files import NotWritten, why_not_written, write_file

EXIT_REGRESSED, EXIT_UNKNOWN = 1, 2
NOTHING_COMPARED = (
    "nothing was compared: no kernel is on both sides, and a gate without a comparison would always be green. Name the "
    "other build of these files; a baseline takes them by --update\n"
)
UNREAD = "{} compared by registers, stack, memory and size alone, without their instructions"


class AuditRefused(Exception):
    """The flags or the files do not fit together; the message says what to do."""


PROBLEMS = (AuditRefused, CompileProblem, BaselineError, NoFolderError, NotWritten, OSError)
"""What can keep the command from an answer."""


class AuditRequest(NamedTuple):
    """What the command line asks for."""

    files: Sequence[Path]
    baseline: Path | None = None
    update: bool = False
    against: Sequence[Path] = ()
    skip: Sequence[str] = ()
    baselines: Path | None = None
    max_size: int | None = None
    max_kernel_size: int | None = None
    json: Path | None = None
    markdown: Path | None = None


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    flags = {name: getattr(parsed, name) for name in AuditRequest._fields}
    return run(AuditRequest(**flags), start=Path.cwd(), write=write)


def run(wanted: AuditRequest, *, start: Path, write: Callable[[str], object]) -> int:
    """Read the files, compare them with what they are held against, and print what differs.

    Returns the exit status: 0, 1 if a kernel got worse or a size is beyond its budget, or 2 if a file cannot be read or
    no kernel could be compared; an update takes all.
    Raises one of ``PROBLEMS``.
    """
    recorded = _recorded(wanted)
    if wanted.baseline is None and not wanted.against and (wanted.json or wanted.markdown):
        raise AuditRefused("--json and --markdown write what differs: name what from, by --against or --baseline")
    tests = _tests(wanted.baselines, start)
    with scratch_folder("gpuperf-audit-") as scratch:
        new = _read_all(_named(wanted.files, recorded or {}, start), Path(scratch, "new"), wanted.skip)
        opponents = _read_all(_named(wanted.against, {}, start), Path(scratch, "old"), wanted.skip)
        old = _paired(opponents, new)
        looked = [
            _compared(one, recorded[name], None) if recorded and name in recorded else _compared(one, *old[name])
            for name, one in new.items()
            if name in (recorded or {}) or name in old
        ]
    budgets = [line for name, one in new.items() for line in _over_budget(name, one.files, wanted)]
    compares = bool(old) or recorded is not None
    if compares:
        _report(looked, tests, budgets, wanted, write)
    for name, one in new.items():
        if name not in (recorded or old):
            write("\n".join([f"{name} is new here:"] * bool(recorded or old) + contents_of(name, one.files)) + "\n")
    unread = [line for one in (*new.values(), *opponents.values()) for line in one.unread]
    write("".join(f"{line}\n" for line in (*unread, *budgets)))
    if unread:
        them = "it" if len(unread) == 1 else "them"
        write(
            f"{numbered(len(unread), 'file')} not read, of which nothing is known: --skip PATTERN leaves {them} out\n"
        )
        return EXIT_UNKNOWN
    if wanted.update and wanted.baseline is not None:
        _update(wanted.baseline, {**(recorded or {}), **{name: one.files for name, one in new.items()}}, write)
        return 0
    if compares and not any(one.audit.judged for one in looked):
        write(NOTHING_COMPARED)
        return EXIT_UNKNOWN
    worse = any(Verdict.WORSE in counts(one.audit) for one in looked)
    return EXIT_REGRESSED if worse or budgets else 0


def _recorded(wanted: AuditRequest) -> dict[str, Files] | None:
    """What the baseline has; None without one."""
    if wanted.baseline is None:
        if wanted.update:
            raise AuditRefused("--update does not say which file to write: name it with --baseline FILE")
        return None
    found = audit_file.read(wanted.baseline)
    if found is None and not wanted.update:
        raise AuditRefused(f"{wanted.baseline}: there is no such file yet: --update writes it")
    return found


class _Named(NamedTuple):
    """A file and what all of its builds are called."""

    file: Path
    name: str
    folder: str
    """Before the name, where that alone is not enough; else empty."""

    @property
    def group(self) -> str:
        return f"{self.folder}/{self.name}" if self.folder else self.name


def _named(files: Sequence[Path], recorded: Container[str], start: Path) -> list[_Named]:
    """The files by name; by folder too, seen from ``start``, where two share a name or one is on record so."""
    names = Counter(map(group_of, files))
    found = []
    for file in files:
        parent = Path(os.path.relpath(file.parent, start)).as_posix()
        long = _Named(file, group_of(file), "" if parent == "." else parent)
        is_long = names[long.name] > 1 or long.group in recorded
        found.append(long if is_long else long._replace(folder=""))
    return found


def _read_all(files: Sequence[_Named], folder: Path, skip: Sequence[str]) -> dict[str, Built]:
    """Each of the files by its group."""
    found: dict[str, Built] = {}
    for number, one in enumerate(files):
        into = folder / str(number)
        if one.group in found:
            raise AuditRefused(f"{one.file}: another of the files is called {one.group} too: audit them one at a time")
        into.mkdir(parents=True)
        built = read_built(one.file, into, skip)
        found[one.group] = built.within(one.folder) if one.folder else built
    return found


def _paired(old: Mapping[str, Built], new: Mapping[str, Built]) -> dict[str, tuple[Files, Code]]:
    """The other build of each of the ``new`` files: that of its name, or the only one there is."""
    if len(old) == len(new) == 1:
        (before,), (name,) = old.values(), new
        named = [*new[name].files]
        one = before.under(named[0]) if len(named) == len(before.files) == 1 else before
        return {name: (one.files, one.code)}
    missing = ", ".join(sorted(old.keys() ^ new.keys())) if old else ""
    if missing:
        raise AuditRefused(f"only one side has {missing}: with several files each needs its other build (--against)")
    return {name: (one.files, one.code) for name, one in old.items()}


def _compared(new: Built, old: Files, code: Code | None) -> Looked:
    audit = compared(old, new.files, kernel_key, lambda place: record_of(place.kernel, place.symbol, place.arch))
    return look_closer(audit, new.code, code)


def _report(
    looked: Sequence[Looked], tests: KernelTests | None, budgets: Sequence[str], wanted: AuditRequest,
    write: Callable[[str], object],
) -> None:  # fmt: skip
    """Print what differs, and write the files that were asked for."""
    audit = joined(one.audit for one in looked)
    places = [place for one in audit.judged if one.judgement.verdict is not Verdict.UNCHANGED for place in one[:2]]
    places += [*audit.new, *audit.gone, *(place for pair in audit.renamed for place in pair)]
    names = names_of(dict.fromkeys(place.symbol for place in places))
    codes = {symbol: hashes for one in looked for symbol, hashes in one.codes.items()}
    covered = None if tests is None else {one: tests.of(one, name, codes.get(one, ())) for one, name in names.items()}
    unread = sum(one.unread for one in looked)
    remarks = remarks_of(audit, names) + [UNREAD.format(numbered(unread, "changed kernel"))] * bool(unread)
    modules, summary = modules_of(audit, names, covered), summary_of(audit)
    write("\n".join(diff_lines(modules, remarks, summary)) + "\n")
    if wanted.json is not None:
        write_file("audit", wanted.json, as_json(audit, names, covered, budgets))
    if wanted.markdown is not None:
        page = diff_markdown("Audit of machine code", modules, [*remarks, *budgets], summary, column="verdict")
        write_file("audit", wanted.markdown, page.encode())


def _tests(given: Path | None, start: Path) -> KernelTests | None:
    """The tests that have kernels on record; None where there are no baselines, and none were named."""
    try:
        store = BaselineStore(folder_of(given, start))
        if given is not None and not store.targets():
            raise AuditRefused(
                f"--baselines={given}: there are no baselines of tests in it: name the folder that "
                "pytest --update-baselines writes"
            )
        return kernel_tests(store)
    except NoFolderError:
        if given is not None:
            raise
        return None


def _over_budget(group: str, files: Files, wanted: AuditRequest) -> list[str]:
    """What is larger than it may be, each with its size."""
    kernels = [
        (one.code_bytes, symbol, arch)
        for of_file in files.values()
        for symbol, archs in of_file.items()
        for arch, several in archs.items()
        for one in several
    ]
    total, lines = sum(size for size, _, _ in kernels), []
    if wanted.max_size is not None and total > wanted.max_size:
        lines.append(f"{group}: {quantity(total, 'B')} of machine code, more than --max-size={wanted.max_size}")
    large = sorted((one for one in kernels if one[0] > (wanted.max_kernel_size or one[0])), reverse=True)
    if large:
        size, symbol, arch = large[0]
        name = names_of([symbol])[symbol]
        more = f", and {len(large) - 1} more" if len(large) > 1 else ""
        lines.append(
            f"{group}: {quoted(name, 200)} for {arch} has {quantity(size, 'B')} of machine code, more than "
            f"--max-kernel-size={wanted.max_kernel_size}{more}"
        )
    return lines


def _update(path: Path, groups: Mapping[str, Files], write: Callable[[str], object]) -> None:
    try:
        written = audit_file.write(path, groups)
    except OSError as problem:
        raise NotWritten(why_not_written("baseline", path, problem)) from problem
    write(f"{'written' if written else 'up to date'}: {path}\n")
