"""``gpuperf targets``: what a team gates, as its manifest says: architectures, GPU models and compilers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_gpuperf.baselines import layout, manifest, transaction
from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.baseline_folder import add_folder, folder_of
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.model.architectures import SPELLINGS
from pytest_gpuperf.model.evidence import COMPILERS
from pytest_gpuperf.session.note_missing import recording_commands


class UnknownTarget(GpuperfError):
    """A name that is none of the things that a manifest lists."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("list", "add", "remove"), default="list", help="default: list")
    parser.add_argument("names", nargs="*", metavar="NAME", help="sm_90, nvidia-h200, or a compiler: 'nvrtc 13.0.88'")
    add_folder(parser)


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    return run(parsed.action, parsed.names, given=parsed.baselines, start=Path.cwd(), write=write)


def run(action: str, names: Sequence[str], *, given: Path | None, start: Path, write: Callable[[str], object]) -> int:
    """List, add or remove targets.  Returns the exit status, 0; 1 where one of those listed has no records.

    Raises ``GpuperfError``.
    """
    folder = folder_of(given, start)
    for name in names:
        if not (layout.is_arch(name) or layout.is_device(name) or manifest.is_toolchain(name)):
            raise UnknownTarget(
                f"'{quoted(name)}' is no architecture (sm_90), no GPU model (nvidia-h200) and no compiler with its "
                f"version ('nvrtc 13.0.88')"
            )
        if action == "add" and layout.is_arch(name) and name not in SPELLINGS:
            raise UnknownTarget(f"'{quoted(name)}' is no architecture that can be compiled for: {', '.join(SPELLINGS)}")
        if action == "add" and layout.is_device(name) and name.startswith(COMPILERS):
            raise UnknownTarget(
                f"'{quoted(name)}' has the name of a compiler, and would be taken for a GPU model: a compiler is named "
                "with its full version after a space: gpuperf targets add 'nvrtc 13.0.88'"
            )
    if action == "list":
        return _list(BaselineStore(folder), write)
    with transaction.exclusive(folder):
        if action == "add":
            writes = manifest.with_targets(
                folder, [name for name in names if not manifest.is_toolchain(name)],
                [name for name in names if manifest.is_toolchain(name)],
            )  # fmt: skip
        else:
            _refuse_unknown(folder, names)
            writes = manifest.without_targets(folder, names)
        transaction.write_all(folder, writes)
    write(f"{'nothing to do' if not writes else 'written'}: {folder / manifest.FILE}\n")
    for name in names:
        _next_step(folder, action, name, write)
    return 0


def _refuse_unknown(folder: Path, names: Sequence[str]) -> None:
    found = manifest.read(folder)
    listed = (*found.targets, *found.toolchains) if found is not None else ()
    for name in names:
        if name not in listed:
            raise UnknownTarget(f"'{quoted(name)}' is not in {folder / manifest.FILE}: it lists {', '.join(listed)}")


def _next_step(folder: Path, action: str, name: str, write: Callable[[str], object]) -> None:
    if action == "add":
        write(f"{name}: {_how_to_record(name)}\n")
        if layout.is_device(name) and not (folder / name).is_dir():
            write(
                f"WARNING: {name} is taken for a GPU model, and there is no folder {folder / name}: under CI every run "
                f"fails until it has records. If it is none: gpuperf targets remove {name}\n"
            )
    elif manifest.is_toolchain(name):
        write(f"{name}: {_records_without(BaselineStore(folder), name)}\n")
    elif (folder / name).is_dir():
        write(f"{name}: remove its records too (git rm -r {folder / name}): the next update lists what it finds\n")


def _how_to_record(name: str) -> str:
    """What is to be done for a target that was added; no gated run misses the records of a compiler."""
    if manifest.is_toolchain(name):
        return (
            "updates tell from now on which of its records are behind. Where that compiler is in use: pytest "
            "--update-baselines=new"
        )
    return f"its records are missed until they are there: {''.join(recording_commands([name]))}"


def _records_without(store: BaselineStore, name: str) -> str:
    """What becomes of the records of a compiler that was removed."""
    if name not in store.recorded_toolchains():
        return "it has no records"
    if name in store.toolchains():
        return (
            "its records are kept, since no compiler is declared any more, and then all that have records count: "
            "declare the one in use with gpuperf targets add, and gpuperf prune --yes removes the others'"
        )
    return "its records are unused now: gpuperf prune --yes removes them"


def _list(store: BaselineStore, write: Callable[[str], object]) -> int:
    found = manifest.read(store.root)
    if found is None:
        write(f"{store.root} has no {manifest.FILE} yet: the first pytest --update-baselines writes it\n")
        return 0
    gone = found.gone_from(store.root)
    counts = {target: len(store.keys(target)) for target in found.targets}
    counts |= {name: _workloads_of(store, name) for name in found.toolchains}
    width = max(map(len, counts), default=0)
    for name, count in counts.items():
        write(f"{name:<{width}}  {numbered(count, 'workload')}{'  it has no records' if name in gone else ''}\n")
    if found.profile:
        write(f"profile {found.profile}\n")
    return 1 if gone else 0


def _workloads_of(store: BaselineStore, toolchain: str) -> int:
    return len({
        (module, test, name)
        for arch in store.archs()
        for module in store.modules(arch)
        for test, workloads in store.static_tests(arch, module, toolchain).items()
        for name in workloads
    })  # fmt: skip
