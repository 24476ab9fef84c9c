"""The baseline's kernel that a candidate is paired with: what it costs to know that it is that."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from unittest.mock import Mock

import pytest

from pytest_gpuperf.baselines.baseline_errors import CubinError
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.model.evidence import KernelBinary, Key
from pytest_gpuperf.model.time_record import Identity, TimeRecord
from pytest_gpuperf.timing.cubin_opponent import BaselineLaunch
from pytest_gpuperf.workload.gate import NotLaunched, baseline_launch

ARCH = "sm_90"
KEY = Key("tests/test_kernels.py", "test_scale", "scale")
SOURCE = 'extern "C" __global__ void scale(float* out) { out[threadIdx.x] *= %s; }\n'


@pytest.fixture(scope="module")
def binaries() -> tuple[KernelBinary, KernelBinary]:
    """A kernel, and another version of it."""
    one, other = (compile_kernel(KernelSource(SOURCE % by, "scale"), ARCH) for by in ("2.5f", "(1 + out[0])"))
    return one, other


def recorded(binary: KernelBinary, code_hash: str = "") -> TimeRecord:
    identity = Identity(
        code=code_hash or binary.profile.code_hash, launch="grid=(1, 1, 1) block=(32, 1, 1) shared=0",
        source=binary.source_hash, toolchain=binary.toolchain,
    )  # fmt: skip
    return TimeRecord(
        identity=identity, timer="cupti", cache="cold", rounds=(), kernel="scale", symbol=binary.symbol,
        cubin=binary.cubin_hash, block=(32, 1, 1),
    )  # fmt: skip


def baseline(record: TimeRecord, candidate: KernelBinary, *cubins: bytes) -> BaselineLaunch:
    """Of a store that holds these cubins."""
    stored = {hashlib.sha256(cubin).hexdigest(): cubin for cubin in cubins}

    def cubin(sha256: str) -> bytes:
        if sha256 not in stored:
            raise CubinError("it is missing")
        return stored[sha256]

    launch = Mock(binary=candidate, block=(32, 1, 1), dynamic_shared_bytes=0)
    launch.identity.return_value = record.identity
    store = Mock(root=Path("baselines"), cubin=cubin)
    worker = Mock(store=store, trust=Mock(why_not_launched=Mock(return_value="")))
    return baseline_launch(worker, KEY, record, launch)


def test_another_cubin_is_checked_without_a_disassembler(
    binaries: tuple[KernelBinary, KernelBinary], disassembled: list[str]
) -> None:
    old, new = binaries
    assert baseline(recorded(old), new, old.cubin).binary.cubin == old.cubin
    assert disassembled == []


@pytest.mark.parametrize("code_hash", ["0" * 64, "other"])
def test_the_same_cubin_with_another_hash_on_record_is_refused(
    binaries: tuple[KernelBinary, KernelBinary], code_hash: str
) -> None:
    old, new = binaries
    said = new.profile.code_hash if code_hash == "other" else code_hash
    with pytest.raises(NotLaunched, match=f"{re.escape(str(KEY))} is refused: .*the record says"):
        baseline(recorded(old, said), old, old.cubin)


def test_a_missing_cubin_is_refused_though_the_candidate_has_it(binaries: tuple[KernelBinary, KernelBinary]) -> None:
    with pytest.raises(NotLaunched, match=f"{re.escape(str(KEY))} is refused: it is missing"):
        baseline(recorded(binaries[0]), binaries[0])
