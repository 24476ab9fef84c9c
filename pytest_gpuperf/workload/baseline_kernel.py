"""The baseline's own machine code: whether it can be run again.

A stored cubin is a stranger's code: it is checked here before it is loaded.  It runs as it was launched when it was
recorded, on the candidate's arrays; under CI not if the default branch lacks it (``context.baseline_trust``).
"""

from __future__ import annotations

import msgspec

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.layout import cubin_path, evidence_path
from pytest_gpuperf.compile.compile_errors import BadCubin, CompileProblem
from pytest_gpuperf.compile.machine_code.binary import stored_binary
from pytest_gpuperf.device.arguments import recorded_arguments
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.launch import Launch, attributes_of, configuration_of, require_limits
from pytest_gpuperf.judge.same_work import RECORD_ANEW, other_arguments
from pytest_gpuperf.model.evidence import KernelBinary, Key
from pytest_gpuperf.model.time_record import TimeRecord
from pytest_gpuperf.run import Run
from pytest_gpuperf.timing.cubin_opponent import BaselineLaunch

_REMEDY = "Restore the baselines from version control, or record the workload again with --update-baselines"
_TRUST = "compare by --gpuperf-against=merge-base:BRANCH"


class NotLaunched(Exception):
    """The baseline's machine code cannot, or may not, run beside the candidate; the message says why and what to do."""


def baseline_launch(worker: Run, key: Key, record: TimeRecord, launch: Launch) -> BaselineLaunch:
    """The baseline's kernel as it was launched, checked against its record and the launch.  Raises ``NotLaunched``."""
    if not record.cubin:
        raise NotLaunched(f"the baseline was recorded without its machine code. {_REMEDY}")
    try:
        binary = _stored(worker, record, launch)
    except (BaselineError, CompileProblem) as problem:
        file = evidence_path(worker.store.root, launch.kernel.device.facts.slug, key.module)
        raise NotLaunched(f"{file}: the machine code of the record of {key} is refused: {problem}") from problem
    if distrust := worker.trust.why_not_launched(record.cubin):
        raise NotLaunched(f"{distrust}, and under CI that is not launched: {_TRUST}")
    was, now = ([(one.offset, one.size) for one in code.parameters] for code in (binary, launch.binary))
    arguments = configuration = None
    try:
        launch.kernel.variables.check_other(binary, record.identity.launch)
        if was != now or other_arguments(record.identity, launch.identity()):
            arguments = recorded_arguments(record.identity.arguments, launch.identity().arguments)
            launch.values_for(binary, arguments)  # raises for what does not fit the kernel's parameters
        if record.grid is not None and record.block is not None:
            attributes = attributes_of(record.identity.launch)
            configuration = configuration_of(record.grid, record.block, record.dynamic_shared_bytes, attributes)
            require_limits(binary, worker.device.facts, configuration)
    except LaunchError as problem:
        sizes = [", ".join(f"{size} bytes" for _, size in parameters) for parameters in (was, now)]
        changed = f"the parameters changed from ({sizes[0]}) to ({sizes[1]}), and " if was != now else ""
        why = f"{changed}the baseline cannot be launched as it was: {problem}{RECORD_ANEW}"
        raise NotLaunched(why) from problem
    if configuration == launch.configuration:
        configuration = None
    return BaselineLaunch(binary, configuration, arguments)


def _stored(worker: Run, record: TimeRecord, launch: Launch) -> KernelBinary:
    """The kernel on record, if its cubin holds the code of the record's identity.

    Raises ``CubinError``, ``BadCubin``.
    """
    try:
        cubin = worker.store.cubin(record.cubin)
        binary = stored_binary(cubin, record.symbol, launch.binary.arch, record.identity.code)
    except BadCubin as problem:
        raise BadCubin(f"{cubin_path(worker.store.root, record.cubin)}: {problem}. {_REMEDY}") from problem
    return msgspec.structs.replace(
        binary, name=record.kernel, source_hash=record.identity.source, toolchain=record.identity.toolchain
    )
