"""Lines on records that no test came to: one for each cause, with what to do about it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_gpuperf.baselines.layout import is_arch
from pytest_gpuperf.formatting import first_of, numbered
from pytest_gpuperf.judge.vanished import Vanished, WhyVanished
from pytest_gpuperf.report.remarks import with_flags

NAMED = 3
"""Tests or files that a line names before it counts the rest."""
_GONE = (
    "restore {it}, or take its records away: pytest --update-baselines=all; "
    "after a renaming: gpuperf baselines mv OLD NEW"
)
REMEDIES = {
    WhyVanished.DELETED: _GONE.format(it="the test, or the use of the fixture"),
    WhyVanished.FILE_GONE: _GONE.format(it="the file, or start pytest with the --rootdir that they were recorded in"),
    WhyVanished.NOT_COLLECTED: "see to collect_ignore, norecursedirs, python_files and --ignore",
    WhyVanished.ELSEWHERE: "name its folder in testpaths, or gate it in a run of its own",
    WhyVanished.DESELECTED: "see to -k, -m and --deselect in addopts, and to conftests; or gate it in a run of its own",
    WhyVanished.SKIPPED: (
        "take the skip away, or measure before the expected failure; or delete the test: pytest --update-baselines=all"
    ),
    WhyVanished.RENAMED: "let their records follow, each as the line of its new name says",
    WhyVanished.NOT_ASKED: (
        "let it call cuda_kernel(...) or gpuperf(...) again; or delete it: pytest --update-baselines=all"
    ),
}
OTHER_WAY_ROUND = (
    "without a GPU the plugin itself ends a test after its machine code was compared: such a test needs no skip"
)


def vanished_lines(found: Iterable[Vanished], root: Path) -> list[str]:
    """A line for each cause; of skips, those for want of a GPU have their own."""
    groups: dict[tuple[WhyVanished, bool], list[Vanished]] = {}
    for one in found:
        groups.setdefault((one.cause, one.for_want_of_gpu), []).append(one)
    return [_line(cause, those, root, no_gpu=no_gpu) for (cause, no_gpu), those in groups.items()]


_GONE_HERE = (WhyVanished.DELETED, WhyVanished.FILE_GONE, WhyVanished.RENAMED)
"""Causes that are no open question where a revision is compared with: its tests are its own."""


def gone_lines(found: Iterable[Vanished], revision: str) -> list[str]:
    """A line on what only the revision has, that a run compares with."""
    gone = (one for one in found if is_gone(one) and one.cause is not WhyVanished.RENAMED)
    names = list(dict.fromkeys(one.record.key.node_id for one in gone))
    return [f"GONE, only in {revision}: {first_of(names, NAMED)}"] if names else []


def is_gone(one: Vanished) -> bool:
    """Whether its test is not there any more, under this name."""
    return one.cause in _GONE_HERE


def _line(cause: WhyVanished, those: Sequence[Vanished], root: Path, *, no_gpu: bool) -> str:
    workloads = numbered(len({one.record.key for one in those}), "workload")
    targets = ", ".join(dict.fromkeys(one.record.target for one in those))
    by_file = cause in (WhyVanished.FILE_GONE, WhyVanished.NOT_COLLECTED, WhyVanished.ELSEWHERE)
    names = list(dict.fromkeys(_name(one, by_file=by_file) for one in those))
    where = f" (rootdir {root})" if by_file else ""
    remedy = OTHER_WAY_ROUND if no_gpu else REMEDIES[cause]
    why = "its test needs a GPU and is skipped" if no_gpu else cause.value
    return f"{workloads} on record NOT-MEASURED on {targets}: {why}: {first_of(names, NAMED)}{where}. To do: {remedy}"


def _name(one: Vanished, *, by_file: bool) -> str:
    name = one.record.key.module if by_file else one.record.key.node_id
    return f"{name} ({one.reason})" if one.reason else name


def targets_gone_line(targets: Sequence[str], folder: Path, repeated: Sequence[str] = ()) -> str:
    """Of targets that the manifest names and that have no records: whether they were deleted or are still to come."""
    names, folders = ", ".join(targets), " ".join(str(folder / target) for target in targets)
    return (
        f"there are no baselines of {names}, NOT-MEASURED: {folder / 'manifest.json'} names what has no file. To do: "
        f"record them: {' and '.join(recording_commands(targets, repeated))}; or restore what was deleted "
        f"(git checkout -- {folders}), or drop the target: gpuperf baselines rm NAME"
    )


def recording_commands(targets: Sequence[str], repeated: Sequence[str] = ()) -> list[str]:
    """The updates that record targets which have no records: one for machine code, one for each GPU model."""
    command = with_flags("pytest --update-baselines=new", repeated)
    archs = ",".join(filter(is_arch, targets))
    for_code = [f"{command} --gpuperf-arch={archs}"] if archs else []
    return [*for_code, *(f"{command}, on a machine with {one}" for one in targets if not is_arch(one))]


def not_gated_line(archs: Sequence[str]) -> str:
    """Of architectures on record that the run was told to leave out."""
    return f"not gated: the machine code for {', '.join(archs)}, which is on record and --gpuperf-arch leaves out"


def elsewhere_line(folder: Path, root: Path, other: Path, modules: Sequence[str], repeated: Sequence[str]) -> str:
    """Of a gated run without any baseline whose tests have theirs in another folder; ``repeated`` are flags to keep."""
    command = with_flags("pytest --update-baselines=new", repeated)
    renamed = other.parent == root
    named = f"--gpuperf-baselines={other.name}" if renamed else f"--rootdir={other.parent}"
    return (
        f"nothing was compared: there are no baselines in {folder} (rootdir {root}), and those of "
        f"{first_of(modules, NAMED)} are in {other}. To do: run it with {shlex.quote(named)}; if "
        f"it is to have others: {command}"
    )


def twice_line(other: Path, modules: Sequence[str]) -> str:
    """Of an update whose tests have baselines below another root too."""
    return (
        f"{first_of(modules, NAMED)} {'has' if len(modules) == 1 else 'have'} baselines in {other} too. To do: keep "
        f"one of the two folders; that one is updated by pytest --update-baselines "
        f"{shlex.quote(f'--rootdir={other.parent}')}"
    )


def no_baselines_line(folder: Path, root: Path, others: Sequence[Path]) -> str:
    """Of a gated run without any baseline, and of those that lie elsewhere."""
    where = f"there are no baselines in {folder} (rootdir {root})"
    if not others:
        return f"{where}: if there should be, --rootdir or --gpuperf-baselines names their folder"
    return (
        f"{where}; there are some in {', '.join(map(str, others))}. To do: start pytest in their folder's parent or "
        "name it with --rootdir or --gpuperf-baselines; if they are others: pytest --update-baselines=new"
    )
