"""What a callable launches: its kernels by one untimed run, and the static evidence of the machine code behind them.

Each kernel with known machine code is evidence of its own, called ``CALLABLE: KERNEL``.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Mapping, Sequence

import msgspec

from pytest_gpuperf.compile.adapters.triton_driver import launches_of
from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.compile.machine_code.binary import loaded
from pytest_gpuperf.compile.machine_code.occupancy import occupancy
from pytest_gpuperf.compile.machine_code.symbols import kernel_key, short_name
from pytest_gpuperf.device.device_errors import TimerError
from pytest_gpuperf.model.evidence import KernelBinary, StaticRecord
from pytest_gpuperf.model.result import LaunchedKernel, TracedLaunch, WorkloadEvidence
from pytest_gpuperf.run import Run
from pytest_gpuperf.test_record import TestRecord
from pytest_gpuperf.workload.request import Request

MOST_KERNELS = 64
"""Different kernels of one callable that are kept; the others are in its time alone."""
MOST_KEPT_BYTES = 256 << 10
"""Of a cubin that is recorded: those of Triton, CuPy and Numba have 4 to 100 KB, those of PyTorch itself 2 to 14 MB."""


def capture(run: Run, test: TestRecord, request: Request) -> None:
    """Trace one run of a callable, and add what it launches to the test.

    What cannot be traced is left to its timing, which fails in the same way and says so.
    """
    with contextlib.suppress(TimerError):
        launches = run.timer.trace(request.sample.slot(1, dropped=0))
        note_launches(run, test, request.name, run.device.facts.arch, launches)


def capture_without_gpu(run: Run, test: TestRecord, request: Request) -> None:
    """Add the kernels of Triton that a callable would launch, for each target architecture.

    Raises what Triton does for a kernel that does not compile, if kernels of the callable are recorded for that target.
    """
    for arch in run.targets:
        launches, problem = launches_of(request.run, arch)
        if problem is not None and _recorded(run, test, request.name, arch):
            raise problem
        note_launches(run, test, request.name, arch, launches)


def _recorded(run: Run, test: TestRecord, callable_name: str, arch: str) -> dict[str, StaticRecord]:
    """Recorded kernels of a callable, by name."""
    return {
        key.workload.removeprefix(f"{callable_name}: "): record
        for (key, _), record in run.store.load(arch, test.module).items()
        if key.test == test.test and record.captured and key.workload.startswith(f"{callable_name}: ")
    }


def note_launches(run: Run, test: TestRecord, callable_name: str, arch: str, launches: Sequence[TracedLaunch]) -> None:
    """Add the kernels of one run on a GPU of ``arch`` to the callable's evidence, and the evidence of their code."""
    alike: dict[tuple[object, ...], list[TracedLaunch]] = {}
    for one in launches:
        alike.setdefault((one.symbol, one.block, one.dynamic_shared_bytes, one.cubin), []).append(one)
    groups = list(alike.values())[:MOST_KERNELS]
    kinds = [first for first, *_ in groups]
    recorded = _recorded(run, test, callable_name, arch)
    names = _names(kinds, recorded)
    codes = {(kind.cubin, kind.symbol): short_name(kind.symbol) for kind in kinds if kind.cubin}
    known = {record.profile.code_hash: record.profile for record in recorded.values()}
    binaries: dict[tuple[bytes, str], KernelBinary] = {}
    with contextlib.suppress(ToolchainMissing):  # figures of the driver are all that is known then
        binaries = loaded(codes, arch, known)
    kernels = []
    for name, kind, group in zip(names, kinds, groups, strict=True):
        binary = binaries.get((kind.cubin, kind.symbol))
        kernels.append(LaunchedKernel(
            name=name, symbol=kind.symbol, grid=kind.grid, block=kind.block, launches=len(group),
            dynamic_shared_bytes=kind.dynamic_shared_bytes, registers=kind.registers,
            stack_bytes=None if binary is None else binary.profile.stack_bytes,
            cubin="" if binary is None else binary.cubin_hash,
            code="" if binary is None else binary.profile.code_hash,
        ))  # fmt: skip
        if binary is not None and arch in run.targets:
            _add(test, f"{callable_name}: {name}", kind, binary)
    evidence = test.workloads[callable_name]
    test.add(msgspec.structs.replace(evidence, kernels=(*evidence.kernels, *kernels)))


def _add(test: TestRecord, name: str, launch: TracedLaunch, binary: KernelBinary) -> None:
    """Add the static evidence of one kernel to the test; one that two runs launch, for two architectures, once."""
    fits = occupancy(
        binary.profile, binary.arch, math.prod(launch.block), launch.dynamic_shared_bytes, clustered=launch.clustered
    )
    record = binary.record(
        block=launch.block, dynamic_shared_bytes=launch.dynamic_shared_bytes, occupancy=fits, grid=launch.grid
    )
    is_kept = len(binary.cubin) <= MOST_KEPT_BYTES
    record = msgspec.structs.replace(record, captured=True, cubin=record.cubin if is_kept else "")
    if is_kept:
        test.cubins[record.cubin] = binary.cubin
    known = test.workloads.get(name) or WorkloadEvidence(key=test.key(name), toolchain=binary.toolchain)
    test.add(msgspec.structs.replace(known, static={**known.static, binary.arch: record}))


def _names(kinds: Sequence[TracedLaunch], recorded: Mapping[str, StaticRecord]) -> list[str]:
    """A name for each, unique: the recorded one of this symbol, else its short name, numbered where that is taken."""
    keys = {name: kernel_key(record.symbol or record.kernel) for name, record in recorded.items()}
    present = {kernel_key(kind.symbol) for kind in kinds}
    names: list[str] = []
    for kind in kinds:
        short = short_name(kind.symbol)
        own = [name for name, key in keys.items() if key == kernel_key(kind.symbol)]
        free = (one for one in itertools.chain([short], (f"{short} [{number}]" for number in itertools.count(2)))
                if keys.get(one) not in present)  # fmt: skip
        names.append(next(one for one in itertools.chain(own, free) if one not in names))
    return names
