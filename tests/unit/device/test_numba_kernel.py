"""Kernels that real Numbas have compiled: what is read of them, how they are launched, what is refused."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from device_samples import DeviceArray
from numba_samples import LATEST, NumbaCuda, NumbaType

from pytest_gpuperf.compile.adapters import handed
from pytest_gpuperf.compile.adapters import numba as numba_adapter
from pytest_gpuperf.compile.adapters.handed import binary_for
from pytest_gpuperf.compile.adapters.numba import read_numba
from pytest_gpuperf.compile.compile_errors import UnsupportedKernel
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.other_compilers import NumbaKernel
from pytest_gpuperf.device.placeholder import PlaceholderDevice

UNPAIRED = "Give gpuperf a function that launches it with Numba; its time is then compared without pairs"


@pytest.fixture
def numba(monkeypatch: pytest.MonkeyPatch) -> NumbaCuda:
    numba = NumbaCuda(LATEST)
    monkeypatch.setitem(sys.modules, "numba.cuda", numba)
    monkeypatch.setattr(handed.importlib.metadata, "version", lambda _: numba.facts["version"])
    return numba


def kernel_of(numba: NumbaCuda, name: str, **options: Any) -> NumbaKernel:
    one = read_numba(numba.dispatcher(name, **options), numba.signature(name), ["sm_90"])
    return NumbaKernel(one, {"sm_90": binary_for(one, "sm_90")}, ["sm_90"], None, device=PlaceholderDevice())


def array(*shape: int, dtype: str = "float32") -> DeviceArray:
    return DeviceArray(np.zeros(shape, dtype))


def test_parameters_are_named_and_typed(numba: NumbaCuda) -> None:
    binary = kernel_of(numba, "axpy").binary
    of_array = ["x.meminfo", "x.parent", "x.size", "x.itemsize", "x", "x.shape[0]", "x.strides[0]"]
    assert [parameter.name for parameter in binary.parameters][:8] == ["a", *of_array]
    assert [parameter.type for parameter in binary.parameters][:7] == [
        "float", "void*", "void*", "long long", "long long", "float*", "long long"
    ]  # fmt: skip
    assert [parameter.size for parameter in binary.parameters] == [4, *[8] * 14]
    assert (binary.name, binary.arch, binary.source_hash) == ("axpy", "sm_90", "")
    assert binary.toolchain.startswith(f"{numba.facts['package']} {numba.facts['version']}, ptxas ")


def test_numbers_of_two_parts_and_flags_are_parameters_of_their_own(numba: NumbaCuda) -> None:
    binary = kernel_of(numba, "transpose").binary
    last = [(parameter.name, parameter.type, parameter.size) for parameter in binary.parameters[-4:]]
    assert last == [("n", "int", 4), ("factor.real", "float", 4), ("factor.imag", "float", 4), ("negate", "bool", 1)]
    assert (binary.profile.shared_bytes, binary.profile.spill_bytes, binary.profile.barriers) == (16 * 17 * 4, 0, 1)


def test_every_architecture_is_compiled_for_with_the_decorator_s_options(
    numba: NumbaCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked: list[tuple[Any, ...]] = []
    link = numba_adapter.link

    def noting(code: bytes, *more: Any) -> Any:
        linked.append(more)
        return link(code, *more)

    monkeypatch.setattr(numba_adapter, "link", noting)
    archs = ["sm_80", "sm_90", "sm_120"]
    one = read_numba(numba.dispatcher("transpose", launch_bounds=256), numba.signature("transpose"), archs)
    assert len({binary_for(one, arch).profile.code_hash for arch in archs}) == 3
    assert [call["cc"] for call in numba.calls] == [(8, 0), (9, 0), (12, 0)]
    assert linked[0] == ("PTX", "sm_80", "transpose", ["-maxrregcount=32"])
    wanted = {"fastmath": True, "launch_bounds": 256, "device": False, "abi": "numba", "output": "ptx"}
    assert wanted.items() <= numba.calls[0].items()
    kernel_of(numba, "axpy")
    assert ("launch_bounds" in numba.calls[-1], linked[-1][-1]) == (False, [])


def test_an_array_becomes_numba_s_parameters(numba: NumbaCuda) -> None:
    x, y = array(1000), array(1000)
    launch = kernel_of(numba, "axpy").launch(4, 256, (2.5, x, y))
    assert launch.arguments == (2.5, None, None, 1000, 4, x, 1000, 4, None, None, 1000, 4, y, 1000, 4)
    entries = launch.identity().arguments
    assert entries[:6] == ("float32=2.5", "null", "null", "int64=1000", "int64=4", "float32[1000] align=256")


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("axpy", (2.5, array(8)), r"axpy takes 3 arguments \(a, x, y\), and 2 were given"),
        ("axpy", (2.5, 7, array(8)), "axpy takes 15 arguments .* and 9 were given"),
        ("axpy", (2.5, array(8, dtype="float64"), array(8)), r"argument x is an array of float64, .* declares float\*"),
        ("axpy", (2.5, array(8, 8), array(8)), "axpy takes 15 arguments .* and 17 were given"),
        ("transpose", (array(4, 4), array(4, 4), 2**40, 1j, True), "argument n is the number 1099511627776"),
    ],
)
def test_arguments_that_numba_did_not_compile_for_are_refused(
    numba: NumbaCuda, name: str, args: Any, words: str
) -> None:
    with pytest.raises(LaunchError, match=words):
        kernel_of(numba, name).launch(1, 32, args)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"device": True}, "it is a device function"),
        ({"debug": True}, "debug=True makes Numba check for exceptions after each launch"),
        ({"link": ["more.cu"]}, "it is linked with files"),
        ({"extensions": [object()]}, "its arguments go through extensions"),
    ],
)
def test_a_kernel_that_needs_numba_is_refused_with_the_remedy(
    numba: NumbaCuda, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(UnsupportedKernel) as caught:
        read_numba(numba.dispatcher("axpy", **options), numba.signature("axpy"), ["sm_90"])
    assert str(caught.value) == f"axpy cannot be launched without Numba: {why}. {UNPAIRED}"


def test_signatures_that_are_no_types_or_too_few_are_refused(numba: NumbaCuda) -> None:
    dispatcher, types = numba.dispatcher("axpy"), numba.signature("axpy")
    for signature, words in (
        ("void(float32)", r"its signature is 'void\(float32\)': .* of Numba's types"),
        (types[:2], r"axpy takes 3 arguments, and its signature is \("),
        ((NumbaType(name="Record(a[type=float32;offset=0])"), *types[1:]), "argument a is .*; arrays and numbers can"),
    ):
        with pytest.raises(UnsupportedKernel, match=words):
            read_numba(dispatcher, signature, ["sm_90"])
    with_return = NumbaType(name="none(...)", args=types)
    assert len(read_numba(dispatcher, with_return, ["sm_90"]).arguments or ()) == 3


def test_code_that_lacks_what_numba_links_is_refused_with_the_remedy(numba: NumbaCuda) -> None:
    ptx = numba.facts["kernels"]["axpy"]["ptx"]
    ptx["sm_90"] = ptx["sm_90"].replace("\tret;", "\tcall.uni sync, ();\n\tret;").replace(
        ".visible .entry", ".extern .func sync ();\n.visible .entry"
    )  # fmt: skip
    with pytest.raises(UnsupportedKernel, match=f"(?s)nvJitLink refuses it for sm_90.*sync.*{UNPAIRED}"):
        kernel_of(numba, "axpy")
