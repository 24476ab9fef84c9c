"""Kernels of the CuTe DSL and cuTile, and PTX as Numba makes it: their parameters, their evidence, what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_compile_kernel import HOG, LIMITED

sys.path.insert(0, str(Path(__file__).parents[1] / "device"))
from handed_samples import RecordedSignature, cubin, cute_compiled, install_recorded_cutile

from pytest_gpuperf.compile.adapters import handed, numba
from pytest_gpuperf.compile.adapters.cute import read_cute
from pytest_gpuperf.compile.adapters.cutile import read_cutile
from pytest_gpuperf.compile.adapters.handed import Handed, binary_for
from pytest_gpuperf.compile.compile_errors import CompileError, ToolchainMissing, UnknownKernel, UnsupportedKernel
from pytest_gpuperf.compile.machine_code.binary import ready_made
from pytest_gpuperf.compile.machine_code.cubin import HOST_CODE, is_tile_kernel, read_cubin
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.model.evidence import KernelBinary, StaticProfile

KEEP = r'cute.compile\(..., options="--keep-cubin --dump-dir FOLDER"\)'
TWO = 'extern "C" __global__ void one(int* x) { *x = 1; }\nextern "C" __global__ void two(int* x) { *x = 2; }'
FLOATS = ("float*", 8), ("int", 4), ("int", 4)
PLANE = ("float*", 8), *[("int", 4)] * 4


def only(one: Handed) -> KernelBinary:
    (arch,) = one.cubins
    return binary_for(one, arch)


def test_kernel_of_cute_is_known_by_its_function_s_name() -> None:
    binary = only(read_cute(cute_compiled("cute-add-4.8.1-sm_90a")))
    assert (binary.name, binary.arch, binary.required_block) == ("add_kernel", "sm_90", (256, 1, 1))
    assert [(one.offset, one.size) for one in binary.parameters] == [(0, 16), (16, 16), (32, 16), (48, 4)]


def test_three_architectures_are_one_kernel_of_cute_s_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handed.importlib.metadata, "version", lambda name: {"nvidia-cutlass-dsl": "4.8.1"}[name])
    one = read_cute([cute_compiled(f"cute-rowsum-4.8.1-{arch}") for arch in ("sm_80", "sm_90a", "sm_100a")])
    assert list(one.cubins) == ["sm_80", "sm_90", "sm_100"]
    made = [binary_for(one, arch) for arch in one.cubins]
    assert [binary.profile.registers for binary in made] == [45, 45, 49]
    assert {(binary.profile.spill_bytes, binary.profile.shared_bytes) for binary in made} == {(0, 0)}
    assert made[2].toolchain == "cutlass-dsl 4.8.1, ptxas 12.9.83"


@pytest.mark.parametrize(("compiled", "words"), [
    (SimpleNamespace(), f"takes what cute.compile.* returned .*, not SimpleNamespace with None: {KEEP}"),
    (cute_compiled("cute-add-4.8.1-sm_80", __cubin__="/no/a.cubin"), "'/no/a.cubin': .* a FOLDER that is there"),
])  # fmt: skip
def test_what_has_no_machine_code_is_refused_with_the_remedy(compiled: Any, words: str) -> None:
    with pytest.raises(UnsupportedKernel, match=words):
        read_cute(compiled)


def test_one_of_several_kernels_has_to_be_named() -> None:
    both = SimpleNamespace(__cubin__=compile_cubin(KernelSource(TWO, "one"), "sm_90").cubin)
    with pytest.raises(UnsupportedKernel, match="has 2 kernels: name one of them, symbol='one'; it has one, two"):
        only(read_cute(both))
    assert only(read_cute(both, "two")).symbol == "two"
    with pytest.raises(UnknownKernel):
        only(read_cute(both, "three"))


# --- cuTile ----------------------------------------------------------------------------------------


def tiled(stem: str, *architectures: str, kernel: Any = None) -> dict[str, KernelBinary]:
    install_recorded_cutile()
    given = read_cutile(kernel or SimpleNamespace(), RecordedSignature(stem), architectures or ("sm_90",))
    return {arch: binary_for(given, arch) for arch in given.cubins}


@pytest.mark.parametrize(
    ("name", "parameters"), [("scale", (*FLOATS, *FLOATS, ("float", 4))), ("softmax", (*PLANE, *PLANE))]
)
def test_array_of_cutile_has_address_shape_and_strides(name: str, parameters: tuple[tuple[str, int], ...]) -> None:
    code = tiled(f"cutile-{name}-1.7.0", "sm_80", "sm_90", "sm_100")
    assert list(code) == ["sm_80", "sm_90", "sm_100"]
    for binary in code.values():
        assert tuple((one.type, one.size) for one in binary.parameters) == parameters


def test_a_tile_kernel_is_told_by_its_cubin_and_its_code_of_the_host_is_part_of_the_hash() -> None:
    content, cute = cubin("cutile-softmax-1.7.0-sm_90"), cubin("cute-add-4.8.1-sm_80")
    found = read_cubin(content)
    (symbol,), (other,), host = found.kernels, read_cubin(cute).kernels, found.elf.section(HOST_CODE)
    assert (is_tile_kernel(content, symbol), is_tile_kernel(cute, other)) == (True, False)
    assert host is not None
    at = content.index(host.data)
    changed = content[: at + 64] + bytes([content[at + 64] ^ 1]) + content[at + 65 :]
    assert len({ready_made(one, symbol, place="here").profile.code_hash for one in (content, changed)}) == 2


def test_kernel_of_cutile_that_others_cannot_launch_is_refused() -> None:
    with pytest.raises(UnsupportedKernel, match=r"softmax: .* takes 10 parameters, but its arguments fill 7"):
        tiled("cutile-scale-1.7.0", kernel=SimpleNamespace(stem="cutile-softmax-1.7.0"))
    signature = RecordedSignature("cutile-scale-1.7.0")
    signature.parameters = (*signature.parameters[:1], type("ListConstraint", (), {})())
    with pytest.raises(UnsupportedKernel, match=r"argument 2 .* is a ListConstraint. Give gpuperf a function that"):
        read_cutile(SimpleNamespace(), signature, ["sm_90"])


def profile(arch: str, *options: str) -> StaticProfile:
    ptx = compile_cubin(KernelSource(HOG, "hog"), arch).ptx.encode()
    made = numba.link(ptx, "PTX", arch, "hog", options)
    return ready_made(made.cubin, "hog", place="hog", log=made.log).profile


def test_ptx_is_assembled_with_its_spills_and_shared_memory() -> None:
    free, limited = profile("sm_120"), profile("sm_120", *LIMITED)
    assert (free.shared_bytes, free.barriers, free.spill_bytes) == (128, 1, 0)
    assert free.registers > 40
    assert limited.registers <= 32
    assert limited.shared_bytes == 128
    assert limited.spill_store_bytes


def test_refused_code_has_its_log_and_a_missing_library_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CompileError, match=r"(?s)busy: nvJitLink cannot link it for sm_90: .*ptxas.*error") as caught:
        numba.link(b".version 9.0\n.target sm_90\nnonsense", "PTX", "sm_90", "busy")
    assert caught.value.log
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvjitlink", None)
    with pytest.raises(ToolchainMissing, match=r"cuda-bindings and nvJitLink cannot .* pip install nvidia-nvjitlink"):
        numba.link(b"", "PTX", "sm_90", "busy")
