"""Kernels that cuTile compiles for the plugin: their parameters, their evidence, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "device"))
from dsl_samples import RecordedSignature, cubin, install_recorded_cutile

from pytest_gpuperf.compile.adapters.cutile import read_cutile
from pytest_gpuperf.compile.adapters.handed import binary_for
from pytest_gpuperf.compile.compile_errors import UnsupportedKernel
from pytest_gpuperf.compile.machine_code.binary import ready_made
from pytest_gpuperf.compile.machine_code.cubin import HOST_CODE, is_tile_kernel, read_cubin
from pytest_gpuperf.model.evidence import KernelBinary

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
FLOATS = ("float*", 8), ("int", 4), ("int", 4)
PLANE = ("float*", 8), *[("int", 4)] * 4
HALVES = ("__half*", 8), *[("int", 4)] * 4


@pytest.fixture(autouse=True)
def recorded_cutile() -> None:
    install_recorded_cutile()


def compiled(stem: str, *architectures: str) -> dict[str, KernelBinary]:
    handed = read_cutile(SimpleNamespace(), RecordedSignature(stem), architectures or ("sm_90",))
    return {arch: binary_for(handed, arch) for arch in handed.cubins}


@pytest.mark.parametrize("version", ["1.5.0", "1.6.0", "1.7.0"])
def test_each_version_s_kernel_is_known_by_its_function_s_name(version: str) -> None:
    binary = compiled(f"cutile-scale-{version}")["sm_90"]
    assert (binary.name, binary.arch, binary.required_block) == ("scale", "sm_90", (128, 1, 1))
    assert binary.toolchain == "cutile, ptxas 13.4.92"


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("scale", (*FLOATS, *FLOATS, ("float", 4))),
        ("softmax", (*PLANE, *PLANE)),
        ("matmul", (*HALVES, *HALVES, *PLANE)),
    ],
)
def test_an_array_is_its_address_its_shape_and_its_strides_on_every_architecture(
    name: str, parameters: tuple[tuple[str, int], ...]
) -> None:
    code = compiled(f"cutile-{name}-1.7.0", *ARCHITECTURES)
    assert list(code) == list(ARCHITECTURES)
    for binary in code.values():
        assert tuple((one.type, one.size) for one in binary.parameters) == parameters


def test_a_tile_kernel_is_told_from_others_by_its_cubin() -> None:
    tile, cute = cubin("cutile-scale-1.7.0-sm_80"), cubin("cute-add-4.8.1-sm_80")
    (one,), (other,) = read_cubin(tile).kernels, read_cubin(cute).kernels
    assert is_tile_kernel(tile, one)
    assert not is_tile_kernel(cute, other)


def test_code_that_forms_descriptors_on_the_host_is_part_of_the_hash() -> None:
    content = cubin("cutile-softmax-1.7.0-sm_90")
    found = read_cubin(content)
    (symbol,), host = found.kernels, found.elf.section(HOST_CODE)
    assert host is not None
    at = content.index(host.data)
    changed = content[: at + 64] + bytes([content[at + 64] ^ 1]) + content[at + 65 :]
    hashes = {ready_made(one, symbol, place="here").profile.code_hash for one in (content, changed, bytes(content))}
    assert len(hashes) == 2


def test_an_architecture_that_cutile_does_not_know_is_refused_in_its_words() -> None:
    with pytest.raises(UnsupportedKernel, match="cannot compile the kernel for sm_75: unsupported GPU sm_75"):
        compiled("cutile-scale-1.7.0", "sm_75")


@pytest.mark.parametrize("kind", ["ListConstraint"])
def test_arguments_that_are_no_arrays_or_numbers_are_refused(kind: str) -> None:
    signature = RecordedSignature("cutile-scale-1.7.0")
    signature.parameters = (*signature.parameters[:1], type(kind, (), {})())
    with pytest.raises(UnsupportedKernel, match=f"argument 2 .* is a {kind}. Give gpuperf a function that launches it"):
        read_cutile(SimpleNamespace(), signature, ["sm_90"])


def test_machine_code_with_other_parameters_than_the_signature_s_is_refused() -> None:
    other = SimpleNamespace(stem="cutile-softmax-1.7.0")
    with pytest.raises(UnsupportedKernel, match=r"softmax: .* takes 10 parameters, and its arguments make 7"):
        binary_for(read_cutile(other, RecordedSignature("cutile-scale-1.7.0"), ["sm_90"]), "sm_90")
