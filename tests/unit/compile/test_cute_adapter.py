"""What is read of kernels that the CuTe DSL has compiled, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "device"))
from dsl_samples import cute_compiled

from pytest_gpuperf.compile.adapters import handed
from pytest_gpuperf.compile.adapters.cute import read_cute
from pytest_gpuperf.compile.adapters.handed import Handed, binary_for
from pytest_gpuperf.compile.compile_errors import UnknownKernel, UnsupportedKernel
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.model.evidence import KernelBinary

KEEP = r'cute.compile\(..., options="--keep-cubin --dump-dir FOLDER"\)'
TWO = 'extern "C" __global__ void one(int* x) { *x = 1; }\nextern "C" __global__ void two(int* x) { *x = 2; }'


def only(one: Handed) -> KernelBinary:
    (arch,) = one.cubins
    return binary_for(one, arch)


@pytest.mark.parametrize("version", ["4.6.3", "4.7.1", "4.8.1"])
def test_each_version_s_kernel_is_known_by_its_function_s_name(version: str) -> None:
    one = read_cute(cute_compiled(f"cute-add-{version}-sm_90a"))
    binary = binary_for(one, "sm_90")
    assert (binary.name, binary.arch, binary.required_block) == ("add_kernel", "sm_90", (256, 1, 1))
    assert [(one.offset, one.size) for one in binary.parameters] == [(0, 16), (16, 16), (32, 16), (48, 4)]


@pytest.mark.parametrize(
    ("name", "registers"), [("add", (12, 12, 12)), ("rowsum", (45, 45, 49)), ("transpose", (24, 24, 24))]
)
def test_three_architectures_are_one_kernel(name: str, registers: tuple[int, ...]) -> None:
    stems = [f"cute-{name}-4.8.1-{arch}" for arch in ("sm_80", "sm_90a", "sm_100a")]
    one = read_cute([cute_compiled(stem) for stem in stems])
    assert list(one.cubins) == ["sm_80", "sm_90", "sm_100"]
    profiles = [binary_for(one, arch).profile for arch in one.cubins]
    assert tuple(profile.registers for profile in profiles) == registers
    assert {profile.spill_bytes for profile in profiles} == {0}
    assert {profile.shared_bytes for profile in profiles} == {0}  # the library asks for shared memory at the launch


def test_the_toolchain_names_the_library_s_version_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def toolchain() -> str:
        return only(read_cute(cute_compiled("cute-add-4.8.1-sm_100a"))).toolchain

    assert toolchain() == "cutlass-dsl, ptxas 12.9.83"
    monkeypatch.setattr(handed.importlib.metadata, "version", lambda name: {"nvidia-cutlass-dsl": "4.8.1"}[name])
    assert toolchain() == "cutlass-dsl 4.8.1, ptxas 12.9.83"


@pytest.mark.parametrize(
    ("compiled", "words"),
    [
        (SimpleNamespace(), f"takes what cute.compile.* returned .*, not SimpleNamespace with None: {KEEP}"),
        (cute_compiled("cute-add-4.8.1-sm_80", __cubin__=None), f"SimpleNamespace with None: {KEEP}"),
        (cute_compiled("cute-add-4.8.1-sm_80", __cubin__="/no/a.cubin"), "'/no/a.cubin': .* a FOLDER that is there"),
    ],
)
def test_what_has_no_machine_code_is_refused_with_the_remedy(compiled: Any, words: str) -> None:
    with pytest.raises(UnsupportedKernel, match=words):
        read_cute(compiled)


def test_one_of_several_kernels_has_to_be_named() -> None:
    both = SimpleNamespace(__cubin__=compile_kernel(KernelSource(TWO, "one"), "sm_90").cubin)
    with pytest.raises(UnsupportedKernel, match="has 2 kernels: name one of them, symbol='one'; it has one, two"):
        only(read_cute(both))
    assert only(read_cute(both, "two")).symbol == "two"
    with pytest.raises(UnknownKernel):
        only(read_cute(both, "three"))
