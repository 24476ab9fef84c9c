"""The baseline's own machine code: whether it can be run again, and how the candidate's differs from it.

A stored cubin is a stranger's code: all that can be checked is checked here, before anything is loaded.  What is not
the code of the identity on record is refused, and then nothing passes against that record.  What is runs as it was
launched when it was recorded, on the candidate's arrays: the work as it was recorded.  Under CI what the change under
test brought along does not run, nor as it says (``context.baseline_trust``).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from pytest_gpuperf.baselines.baseline_errors import BaselineError, MissingCubinError
from pytest_gpuperf.baselines.layout import cubin_path, evidence_path
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import BadCubin, CompileProblem, OtherCode
from pytest_gpuperf.compile.cubin.occupancy import occupancy
from pytest_gpuperf.compile.cubin.ready_made import binary_of
from pytest_gpuperf.compile.cubin.stored_code import read_stored
from pytest_gpuperf.context.baseline_trust import BaselineTrust
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.launch import Configuration, Launch
from pytest_gpuperf.device.launch_attributes import attributes_of, check_attributes
from pytest_gpuperf.device.limits import check_limits, dim3
from pytest_gpuperf.device.recorded_arguments import RecordedArguments, recorded_arguments
from pytest_gpuperf.judge.comparability import other_arguments
from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.model.evidence import KernelBinary, Key, Parameter, StaticRecord, TimeRecord
from pytest_gpuperf.model.verdict import Change

_REMEDY = "Restore the baselines from version control, or record the workload again with --update-baselines"


class Opponent(NamedTuple):
    """What the candidate can be paired with."""

    binary: KernelBinary | None
    """None if the baseline cannot be run again."""
    obstacle: str = ""
    """Why it cannot."""
    other_parameters: bool = False
    """It takes other parameters, and its arguments cannot be formed again: the two do not do the same work."""
    refused: bool = False
    """Its machine code is on record, and is missing or not shown to be that: no comparison with the record passes."""
    distrusted: bool = False
    """Its machine code came with the change under test and is not launched: the record's times have to do."""
    configuration: Configuration | None = None
    """How it was launched, where that differs from the candidate's launch."""
    arguments: RecordedArguments | None = None
    """What it was launched on, where that differs from the candidate's arguments."""


def opponent_of(
    store: BaselineStore,
    cache: CompileCache,
    trust: BaselineTrust,
    key: Key,
    record: TimeRecord,
    launch: Launch | None,
) -> Opponent:
    """The baseline's kernel, read from the store and checked against its record and the launch it would be given."""
    if launch is None:
        return Opponent(None, "a callable has no machine code of its own that could be run again")
    if not record.cubin:
        why = "the baseline was recorded without its machine code"
        if trust.believes(evidence_path(store.root, launch.kernel.device.facts.slug, key.module)):
            return Opponent(None, why)
        return Opponent(None, f"{why}, and came with this change. {_REMEDY}", refused=True)
    try:
        binary = _stored(store, cache, record, launch)
    except MissingCubinError as problem:
        return Opponent(None, f"the baseline's machine code cannot be run again: {problem}", refused=True)
    except (BaselineError, CompileProblem) as problem:
        file = evidence_path(store.root, launch.kernel.device.facts.slug, key.module)
        why = f"{file}: the machine code of the record of {key} is refused: {problem}"
        return Opponent(None, why, refused=True)
    other_parameters = _layout(binary) != _layout(launch.binary)
    if distrust := trust.why_not_launched(record.cubin):
        return Opponent(None, distrust, other_parameters=other_parameters, distrusted=True)
    try:
        launch.kernel.variables.check_other(binary, record.identity.launch)
        arguments = None
        if other_parameters or other_arguments(record.identity, launch.identity()):
            arguments = recorded_arguments(binary, record.identity.arguments, launch)
        configuration = _recorded_launch(record, binary, launch)
    except LaunchError as problem:
        was, now = (_described(one.parameters) for one in (binary, launch.binary))
        changed = f"the parameters changed from {was} to {now}, and " if other_parameters else ""
        obstacle = f"{changed}the baseline cannot be launched as it was: {problem}"
        return Opponent(None, obstacle, other_parameters=other_parameters)
    if configuration is not None or arguments is not None:
        distrust = trust.why_not_launched_so(store.root, launch.kernel.device.facts.slug, key, record)
        if distrust:
            return Opponent(None, f"{distrust}. {_REMEDY}", other_parameters=other_parameters, refused=True)
    return Opponent(binary, configuration=configuration, arguments=arguments)


def _recorded_launch(record: TimeRecord, binary: KernelBinary, launch: Launch) -> Configuration | None:
    """What the record says of the launch, checked; None if it is the candidate's, or not on record."""
    if record.grid is None or record.block is None:
        return None
    grid, block = dim3(record.grid, "the recorded grid"), dim3(record.block, "the recorded block")
    recorded = Configuration(grid, block, record.dynamic_shared_bytes, attributes_of(record.identity.launch))
    if recorded == launch.configuration:
        return None
    facts, shared_bytes = launch.kernel.device.facts, record.dynamic_shared_bytes
    check_limits(binary, facts, grid, block, shared_bytes, resident=True)
    check_attributes(binary, facts, recorded.attributes, grid, block, shared_bytes)
    return recorded


def changes_since(
    store: BaselineStore, cache: CompileCache, key: Key, record: TimeRecord, launch: Launch
) -> tuple[Change, ...]:
    """What differs between the baseline's machine code and the candidate's; empty if the baseline's is lost."""
    arch = launch.binary.arch
    old, new = _on_record(store, key, record, arch), launch.binary
    if old is not None:
        block, dynamic_bytes = launch.block, launch.dynamic_shared_bytes
        resident = occupancy(new.profile, arch, launch.threads_per_block, dynamic_bytes)
        now = new.record(block=block, dynamic_shared_bytes=dynamic_bytes, occupancy=resident)
        return compare_static(key, arch, old, now).changes
    try:
        stored = _stored(store, cache, record, launch)
        if stored.cubin == new.cubin:
            return ()
        same = binary_of(new.cubin, new.symbol, arch)  # read in the same way, so that the same is left out
    except (BaselineError, CompileProblem):
        return ()
    return compare_static(key, arch, stored.record(block=launch.block), same.record(block=launch.block)).changes


def _stored(store: BaselineStore, cache: CompileCache, record: TimeRecord, launch: Launch) -> KernelBinary:
    """The kernel on record, if its cubin holds the code of the record's identity.

    Where it is the candidate's cubin, it was read when that was compiled; else it is read now (0.2 s).
    Raises ``CubinError``, ``BadCubin``, ``OtherCode``, ``ToolchainMissing``.
    """
    now = launch.binary
    arch, cubin = now.arch, store.cubin(record.cubin)
    if (cubin, record.symbol, record.identity.code) == (now.cubin, now.symbol, now.profile.code_hash):
        return msgspec.structs.replace(
            now, name=record.kernel, source_hash=record.identity.source, toolchain=record.identity.toolchain
        )
    try:
        read = read_stored(cubin, record.symbol, arch, record.identity.code, cache)
    except (BadCubin, OtherCode) as problem:
        raise type(problem)(f"{cubin_path(store.root, record.cubin)}: {problem}. {_REMEDY}") from problem
    return binary_of(
        cubin, record.symbol, arch, name=record.kernel, source_hash=record.identity.source,
        toolchain=record.identity.toolchain, read=read,
    )  # fmt: skip


def _on_record(store: BaselineStore, key: Key, record: TimeRecord, arch: str) -> StaticRecord | None:
    """Static evidence of exactly the machine code that was timed."""
    found = store.static(arch, key, record.identity.toolchain).record
    return found if found is not None and found.profile.code_hash == record.identity.code else None


def _layout(binary: KernelBinary) -> list[tuple[int, int]]:
    return [(parameter.offset, parameter.size) for parameter in binary.parameters]


def _described(parameters: tuple[Parameter, ...]) -> str:
    return f"({', '.join(f'{parameter.size} bytes' for parameter in parameters)})"
