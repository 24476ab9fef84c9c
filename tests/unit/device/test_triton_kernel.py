"""Kernels that real Tritons have compiled: what is read of them, how they are launched, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_samples import DeviceArray
from triton_samples import compiled

from pytest_gpuperf.compile.adapters.handed import OWN_ARCH, Handed, binary_for
from pytest_gpuperf.compile.adapters.triton import read_triton
from pytest_gpuperf.compile.compile_errors import UnsupportedKernel
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.interface import LoadedKernel
from pytest_gpuperf.device.other_compilers import TritonKernel
from pytest_gpuperf.device.placeholder import PlaceholderDevice
from pytest_gpuperf.model.evidence import KernelBinary

ADDS = ["add-3.0.0", "add-3.3.1", "add-3.6.0", "add-3.9.0"]
UNPAIRED = "Give gpuperf a function that launches it with Triton; its time is then compared without pairs"


class NotingDevice(PlaceholderDevice):
    """Notes what is launched."""

    def __init__(self) -> None:
        super().__init__()
        self.launched: list[tuple[Any, ...]] = []

    def load(self, binary: KernelBinary) -> LoadedKernel:
        return lambda launch, args: self.launched.append((launch, args))  # type: ignore[return-value]


def kernel_of(one: Any, device: PlaceholderDevice | None = None) -> TritonKernel:
    handed = read_triton(one)
    binary = triton_binary(handed)
    return TritonKernel(handed, {"sm_90": binary}, ["sm_90"], "sm_90", device=device or PlaceholderDevice())


def triton_binary(handed: Handed) -> KernelBinary:
    return binary_for(handed, OWN_ARCH)


def array(dtype: str = "float32", length: int = 4096, address: int = 0x7F0000000200) -> DeviceArray:
    return DeviceArray(np.zeros(length, dtype), address)


# --- what Triton tells ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stem", "toolchain", "scratch"),
    [
        ("add-3.0.0", "triton", 0),
        ("add-3.3.1", "triton 3.3.1", 1),
        ("add-3.6.0", "triton 3.6.0", 2),
        ("add-3.9.0", "triton 3.9.0, ptxas 13.4.59", 2),
    ],
)
def test_each_triton_s_parameters_are_its_function_s_and_null_pointers_behind_them(
    stem: str, toolchain: str, scratch: int
) -> None:
    binary = triton_binary(read_triton(compiled(stem)))
    own = [("x", "float*", 8), ("y", "float*", 8), ("out", "float*", 8), ("n", "int", 4)]
    hidden = [("scratch memory", "void*", 8)] * scratch
    assert [(one.name, one.type, one.size) for one in binary.parameters] == own + hidden
    assert (binary.name, binary.arch, binary.toolchain) == ("add", "sm_90", toolchain)


def test_the_source_changes_with_the_function_and_with_the_options() -> None:
    one, same, warps, other = (
        triton_binary(read_triton(triton)).source_hash
        for triton in (
            compiled("add-3.6.0"), compiled("add-3.6.0"), compiled("add-3.6.0", num_stages=4), compiled("scale-3.6.0"),
        )
    )  # fmt: skip
    assert one == same
    assert len({one, warps, other}) == 3


# --- launches ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stem", ADDS)
def test_a_launch_has_triton_s_block_and_shared_memory_and_null_for_scratch_memory(stem: str) -> None:
    device = NotingDevice()
    x, y, out = (array(address=0x7F0000000000 + 4096 * n) for n in range(3))
    launch = kernel_of(compiled(stem), device).launch(4, (x, y, out, 4096, 1024))
    launch()
    ((grid, block, shared, _), args), *_ = device.launched
    assert (grid, block, shared) == ((4, 1, 1), (128, 1, 1), 0)
    assert [int(value) for value in args[:4]] == [x.data.ptr, y.data.ptr, out.data.ptr, 4096]
    assert all(value == 0 and value.dtype == np.uint64 for value in args[4:])
    assert len(args) == len(launch.binary.parameters)


@pytest.mark.parametrize("stem", ["scale-3.0.0", "scale-3.6.0"])
def test_constants_are_given_in_their_places_and_are_no_parameters(stem: str) -> None:
    kernel = kernel_of(compiled(stem))
    x, out = array("float16"), array("float16")
    launch = kernel.launch(16, (x, out, 1, 2.5, 4096, 256))
    entries = launch.identity().arguments
    assert [entry.partition("[")[0] for entry in entries[:4]] == ["float16", "float16", "float32=2.5", "int32=4096"]
    assert entries[4:] == ("null",) * (len(entries) - 4)
    assert kernel.launch(16, (x, out, 1, 2.5, 4096)).identity() == launch.identity()  # those at the end may be left out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            (array(), array(), array(), 4096, 512),
            "add: argument BLOCK is 512, and 1024 was compiled in",
        ),
        ((array(), array(), array(), 4096, array()), "argument BLOCK is an array, and 1024 was compiled in"),
        ((array(), array(), array()), r"add takes 5 arguments \(x, y, out, n, BLOCK\), and 3 were given"),
        ((array(), array(), array(), 4096, 1024, 4), "takes 5 arguments .* and 6 were given"),
        ((array("float64"), array(), array(), 4096), r"argument x is an array of float64, but .* float\* \(8 bytes\)"),
        ((array(), 5, array(), 4096), "argument y is the number 5.* pass an array"),
        ((array(), array(), array(), 2.5), "argument n is the number 2.5"),
        ((array(), array(), array(), 2**40), "argument n is the number 1099511627776, but the kernel declares int"),
        (array(), "args takes a tuple"),
    ],
)
def test_arguments_that_the_kernel_was_not_compiled_for_are_refused(args: Any, words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        kernel_of(compiled("add-3.6.0")).launch(4, args)


# --- what only Triton can launch -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"global_scratch_size": 128}, "it needs scratch memory, global_scratch_size=128"),
        ({"profile_scratch_size": 64}, "it needs scratch memory, profile_scratch_size=64"),
        ({"num_ctas": 2}, "it is launched in clusters of 2 blocks"),
        ({"cluster_dims": (2, 2, 1)}, "it is launched in clusters of 4 blocks"),
        ({"launch_cooperative_grid": True}, "its grid is launched cooperatively"),
    ],
)
def test_a_kernel_that_needs_triton_s_launcher_is_refused_with_the_remedy(metadata: dict[str, Any], why: str) -> None:
    with pytest.raises(UnsupportedKernel) as caught:
        read_triton(compiled("add-3.6.0", **metadata))
    assert str(caught.value) == f"add cannot be launched without Triton: {why}. {UNPAIRED}"


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ("tensordesc<fp16[64, 64]>", "its argument y is a tensor descriptor, which Triton passes by value"),
        ("nvTmaDesc", "its argument y is a tensor descriptor"),
        (("*fp32", "i32"), "its argument y is a tuple"),
    ],
)
def test_arguments_that_are_no_plain_ones_are_refused(declared: Any, why: str) -> None:
    one = compiled("add-3.6.0")
    one.src.signature["y"] = declared
    with pytest.raises(UnsupportedKernel, match=why):
        read_triton(one)
