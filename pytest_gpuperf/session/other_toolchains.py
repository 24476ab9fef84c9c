"""Compilers of a team beside the one in use: which of their records an update leaves behind, and recording for them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from pytest_gpuperf.atomic_write import scratch_folder
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.compile.toolkit import choose_nvrtc, libraries_of
from pytest_gpuperf.compile.version import toolchain
from pytest_gpuperf.context.child_command import same_command
from pytest_gpuperf.context.child_process import log_lines, run_child
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import Recorded
from pytest_gpuperf.options import Options

LIMIT_S = 3600.0
NVRTC = "nvrtc "
LOG_LINES = 5
WRITTEN = re.compile(r"\d+ baselines? written")


def choose(folder: Path) -> None:
    """Compile with the NVRTC of this folder.  Raises ``pytest.UsageError``."""
    try:
        choose_nvrtc(folder)
    except ToolchainMissing as problem:
        raise pytest.UsageError(f"--gpuperf-nvrtc: {problem}") from None


def behind(store: BaselineStore, recorded: Iterable[Recorded], own: str) -> dict[str, set[Key]]:
    """By declared version of the compiler ``own``, the workloads just recorded whose source it has not on record."""
    found: dict[str, set[Key]] = {
        name: set() for name in store.toolchains() if name != own and name.split()[0] == own.split()[0]
    }
    for one in recorded:
        if not isinstance(one.after, StaticRecord) or store.static(one.target, one.key, own).record != one.after:
            continue
        for name, keys in found.items():
            record = store.static(one.target, one.key, name).record
            if record is None or record.source_hash != one.after.source_hash:
                keys.add(one.key)
    return {name: keys for name, keys in found.items() if keys}


def record_others(
    config: pytest.Config,
    options: Options,
    store: BaselineStore,
    recorded: Sequence[Recorded],
    progress: Callable[[str], None],
) -> Iterator[str]:
    """Record for the other declared toolchains where their NVRTCs are at hand; a line for each, done or behind."""
    if options.nvrtc is not None:  # the run that started this one looks after the others
        return
    if not any(isinstance(one.after, StaticRecord) for one in recorded):
        return
    for name, keys in sorted(behind(store, recorded, toolchain()).items()):
        folder = _folder_of(options.toolchains, name)
        if folder is None:
            late = numbered(len(keys), "workload", "is", "are")
            yield f"{name}: {late} behind now, on record with an older source or not at all. {_remedy(options, name)}"
            continue
        progress(f"recording for {name}")
        yield _recorded_by_another(config, name, folder)


def _folder_of(folders: Path | None, name: str) -> Path | None:
    if folders is None or not name.startswith(NVRTC):
        return None
    wanted = name.removeprefix(NVRTC)
    return next((one for one in sorted(folders.iterdir()) if one.is_dir() and wanted in libraries_of(one)), None)


def _remedy(options: Options, name: str) -> str:
    if not name.startswith(NVRTC):
        return "Update where that compiler is at hand"
    version = name.removeprefix(NVRTC)
    place = (options.toolchains or Path("nvrtcs")) / version
    return (
        f"Update with it too: pip install --target {place} nvidia-cuda-nvrtc=={version}, then pytest "
        f"--update-baselines --gpuperf-nvrtc={place}"
    )


def _recorded_by_another(config: pytest.Config, name: str, folder: Path) -> str:
    """Run the same update in a process that compiles with another NVRTC and sees no GPU; what became of it."""
    with scratch_folder("gpuperf-toolchain-") as own:
        log = Path(own) / "log"
        command = [*same_command(config, Path(own)), f"--gpuperf-nvrtc={folder}"]
        environ = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
        status = run_child(command, config.invocation_params.dir, log, LIMIT_S, environ)
        lines = log_lines(log)
        written = next((line for line in reversed(lines) if WRITTEN.match(line)), "")
        if status == 0 and written:
            return f"{name}: {written}"
        tail = "\n".join(lines[-LOG_LINES:])
        return f"{name}: not recorded, pytest exit status {status}:\n{tail}"
