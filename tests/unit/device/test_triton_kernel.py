"""Kernels that real Tritons have compiled: what is read of them, how they are launched, what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from device_samples import DeviceArray, NotingDevice
from triton_samples import Config, compiled

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.compile.adapters.handed import OWN_ARCH, binary_for
from pytest_gpuperf.compile.adapters.triton import read_triton
from pytest_gpuperf.compile.compile_errors import UnsupportedKernel
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.other_compilers import TritonKernel

UNPAIRED = "Give gpuperf a function that launches it with Triton; its time is then compared without pairs"
NARROW = "add-narrow-3.6.0"


def kernel_of(one: Any) -> TritonKernel:
    handed = read_triton(one)
    return TritonKernel(handed, {"sm_90": binary_for(handed, OWN_ARCH)}, ["sm_90"], "sm_90", device=NotingDevice())


def array(dtype: str = "float32", address: int = 0x7F0000000200) -> DeviceArray:
    return DeviceArray(np.zeros(4096, dtype), address)


# --- parameters and launches ---------------------------------------------------------------------


def test_parameters_are_the_function_s_and_null_pointers_behind_them() -> None:
    kernel = kernel_of(compiled("add-3.6.0"))
    own = [("x", "float*", 8), ("y", "float*", 8), ("out", "float*", 8), ("n", "int", 4)]
    hidden = [("scratch memory", "void*", 8)] * 2
    binary = kernel.binary
    assert [(one.name, one.type, one.size) for one in binary.parameters] == own + hidden
    assert (binary.name, binary.arch, binary.toolchain) == ("add", "sm_90", "triton 3.6.0")
    arrays = [array(address=0x7F0000000000 + 4096 * number) for number in range(3)]
    kernel.launch(4, (*arrays, 4096, 1024))()
    (grid, block, shared, _), args = kernel.device.log[-1][1:]  # type: ignore[attr-defined]
    assert (grid, block, shared) == ((4, 1, 1), (128, 1, 1), 0)
    assert [int(value) for value in args] == [*(one.data.ptr for one in arrays), 4096, 0, 0]


def test_the_source_changes_with_the_function_and_with_the_options() -> None:
    made = compiled("add-3.6.0"), compiled("add-3.6.0"), compiled("add-3.6.0", num_stages=4), compiled("scale-3.6.0")
    one, same, warps, other = (binary_for(read_triton(each), OWN_ARCH).source_hash for each in made)
    assert one == same
    assert len({one, warps, other}) == 3


def test_constants_are_given_in_their_places_and_are_no_parameters() -> None:
    kernel = kernel_of(compiled("scale-3.6.0"))
    x, out = array("float16"), array("float16")
    launch = kernel.launch(16, (x, out, 1, 2.5, 4096, 256))
    entries = launch.identity().arguments
    assert [entry.partition("[")[0] for entry in entries[:4]] == ["float16", "float16", "float32=2.5", "int32=4096"]
    assert entries[4:] == ("null",) * (len(entries) - 4)
    assert kernel.launch(16, (x, out, 1, 2.5, 4096)).identity() == launch.identity()  # those at the end may be left out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((array(), array(), array(), 4096, 512), "add: argument BLOCK is 512, and 1024 was compiled in"),
        ((array(), array(), array(), 4096, array()), "argument BLOCK is an array, and 1024 was compiled in"),
        ((array(), array(), array()), r"add takes 5 arguments \(x, y, out, n, BLOCK\), and 3 were given"),
        ((array(), array(), array(), 4096, 1024, 4), "takes 5 arguments .* and 6 were given"),
        ((array("float64"), array(), array(), 4096), r"argument x is an array of float64, but .* float\* \(8 bytes\)"),
        ((array(), array(), array(), 2**40), "argument n is the number 1099511627776, but the kernel declares int"),
        (array(), "args takes a tuple"),
    ],
)
def test_arguments_that_the_kernel_was_not_compiled_for_are_refused(args: Any, words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        kernel_of(compiled("add-3.6.0")).launch(4, args)


@pytest.mark.parametrize(
    ("metadata", "declared", "why"),
    [
        ({"global_scratch_size": 128}, "*fp32", "it needs scratch memory, global_scratch_size=128"),
        ({"num_ctas": 2}, "*fp32", "it is launched in clusters of 2 blocks"),
        ({"cluster_dims": (2, 2, 1)}, "*fp32", "it is launched in clusters of 4 blocks"),
        ({"launch_cooperative_grid": True}, "*fp32", "its grid is launched cooperatively"),
        ({}, "nvTmaDesc", "its argument y is a tensor descriptor, which Triton passes by value"),
        ({}, "tensordesc<fp16[64, 64]>", "its argument y is a tensor descriptor, which Triton passes by value"),
        ({}, ("*fp32", "i32"), "its argument y is a tuple"),
    ],
)
def test_a_kernel_that_needs_triton_s_launcher_is_refused_with_the_remedy(
    metadata: dict[str, Any], declared: Any, why: str
) -> None:
    one = compiled("add-3.6.0", **metadata)
    one.src.signature["y"] = declared
    with pytest.raises(UnsupportedKernel) as caught:
        read_triton(one)
    assert str(caught.value) == f"add cannot be launched without Triton: {why}. {UNPAIRED}"


# --- an autotuner's choice -----------------------------------------------------------------------


def test_configuration_is_told_with_its_options() -> None:
    assert read_triton(compiled(NARROW), Config(NARROW)).config == "BLOCK=256, num_warps=2, num_stages=2"


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"maxnreg": 64}, "BLOCK=256, num_warps=2, num_stages=2, maxnreg=64"),
        ({"maxnreg": None, "num_consumer_groups": 0}, "BLOCK=256, num_warps=2, num_stages=2"),
        ({"num_consumer_groups": 2}, "BLOCK=256, num_consumer_groups=2, num_warps=2, num_stages=2"),
    ],
)
def test_options_are_told_where_they_do_something(metadata: dict[str, Any], told: str) -> None:
    assert read_triton(compiled(NARROW, **metadata), Config(NARROW, **metadata)).config == told


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (Config(NARROW, BLOCK=1024), "config has BLOCK=1024, and add was compiled with 256: the autotuner keeps the"),
        (Config(NARROW, num_warps=4), "config has num_warps=4, and add was compiled with 2: "),
        (Config(NARROW, maxnreg=64), "config has maxnreg=64, and add was compiled with None: "),
        (Config(NARROW, SPLIT=2), "config has SPLIT=2, and add was compiled with None: "),
        *(
            (one, r"config is a \w+; it takes kernel\.best_config, which an autotuned kernel")
            for one in ("BLOCK=256", 5, {}, SimpleNamespace(best_config=1), SimpleNamespace(all_kwargs=dict))
        ),
    ],
)
def test_what_is_not_this_kernel_s_configuration_is_refused(config: Any, words: str) -> None:
    with pytest.raises(BadArgument, match=f"^from_triton: {words}"):
        read_triton(compiled(NARROW), config)
