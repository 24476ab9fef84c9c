"""Kernels that real CuPys were given: what is read of them, the code that is made for them, what is refused."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cupy_samples import VERSIONS, cases, elementwise, module, raw
from device_samples import DeviceArray, make_binary
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.compile.compile_errors import UnsupportedCupyKernel
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.cupy_code import read_cupy, source_of
from pytest_gpuperf.compile.cupy_elementwise import elementwise_source
from pytest_gpuperf.device.cupy_arrays import elementwise_call
from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.launch import Kernel
from pytest_gpuperf.device.placeholder import PlaceholderDevice
from pytest_gpuperf.device.recorded_arguments import recorded_arguments

UNPAIRED = "Give gpuperf a function that launches it with CuPy; its time is then compared without pairs"


def array(*shape: int, dtype: str = "float32", address: int = 0x7F0000000200) -> DeviceArray:
    return DeviceArray(np.zeros(shape, dtype), address)


@pytest.fixture
def cupy_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed CuPy, as far as its folder of headers goes."""
    headers = tmp_path / "_core" / "include"
    (headers / "cupy").mkdir(parents=True)
    installed = ModuleType("cupy_samples")
    installed.__file__ = str(tmp_path / "__init__.py")
    monkeypatch.setitem(sys.modules, "cupy_samples", installed)
    return headers


# --- RawKernel and RawModule ---------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_a_raw_kernel_is_compiled_from_its_own_source_and_options(version: str) -> None:
    code = read_cupy(raw("scale", version))
    (source,) = code.sources
    assert (source.name, source.options, source.compiler) == ("scale", ("--use_fast_math",), "nvrtc")
    binary = compile_kernel(source_of(code, "sm_90", None), "sm_90")
    assert [parameter.size for parameter in binary.parameters] == [8, 4, 4]
    assert binary.source_hash
    assert not code.cooperative


def test_nvcc_and_cooperative_launches_are_kept() -> None:
    code = read_cupy(raw("grid"))
    assert code.cooperative
    assert (code.sources[0].compiler, code.sources[0].options) == ("nvcc", ("--std=c++17", "-ftz=true"))


def test_cupy_s_folders_are_searched_as_cupy_does_its_cccl_first(cupy_folder: Path) -> None:
    (source,) = read_cupy(raw("scale")).sources
    cccl = [f"-I{cupy_folder / 'cupy/_cccl' / part}" for part in ("cub", "thrust", "libcudacxx")]
    assert list(source.options) == [*cccl, "--use_fast_math", f"-I{cupy_folder}"]


def test_complex_numbers_are_translated_as_cupy_does() -> None:
    text = read_cupy(raw("conj")).sources[0].text
    assert "cuComplex.h" not in text
    assert text.startswith("#include <cupy/complex.cuh>\n#include <cupy/carray.cuh>\n")
    assert "#include <cupy/cuComplex_bridge.h>\nextern" in text
    untranslated = read_cupy(raw("conj", translate_cucomplex=False)).sources[0].text
    assert untranslated.startswith("#include <cuComplex.h>")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_template_of_a_module_is_known_by_its_name_expression_or_its_symbol(version: str) -> None:
    by_name = read_cupy(module("copies", version), "copy<int>")
    binary = compile_kernel(source_of(by_name, "sm_90", None), "sm_90")
    assert binary.name == "copy<int>"
    state = {"name": binary.symbol, "code": by_name.sources[0].text, "name_expressions": ["copy<float>", "copy<int>"]}
    function = read_cupy(raw("scale", version, **state))  # what get_function("copy<int>") returns
    assert source_of(function, "sm_90", None).name_expression == "copy<int>"


def test_a_kernel_of_a_module_that_is_no_template_keeps_its_name() -> None:
    function = raw("scale", name_expressions=["scale"], options=())
    assert source_of(read_cupy(function), "sm_90", None).name_expression == "scale"
    text = raw("scale").code + "\ntemplate <class T> __global__ void copy(T* x) { *x = 1; }"
    among_others = read_cupy(raw("scale", code=text, name_expressions=["copy<float>"]))
    assert source_of(among_others, "sm_90", None).name_expression is None


def test_a_module_of_a_cubin_is_that_cubin() -> None:
    code = read_cupy(module("cubin"), "scale")
    assert (code.path, code.name, code.sources) == ("kernels/scale.cubin", "scale", ())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: read_cupy(raw("scale", jitify=True)), "scale: it is compiled with Jitify, which CuPy 15 drops"),
        (lambda: read_cupy(raw("scale"), "other"), "a RawKernel has its name; name='other' is for a RawModule"),
        (lambda: read_cupy(module("copies")), "takes a RawModule with the name of a kernel"),
        (lambda: read_cupy(module("complex"), "conj"), r"translate_cucomplex=\.\.\.\), or hand over module.get_fun"),
        (lambda: read_cupy(module("ptx"), "scale"), "the PTX kernels/scale.ptx of it, .* with from_cubin"),
        (
            lambda: read_cupy(elementwise("difference")),
            f"an ElementwiseKernel with args=, not ElementwiseKernel.* {UNPAIRED}",
        ),
        (lambda: read_cupy(print), "not builtin_function_or_method"),
        (lambda: elementwise_call(raw("scale"), (), None, 128), "args= for an ElementwiseKernel, not for a RawKernel"),
    ],
)
def test_what_is_no_kernel_of_cupy_s_is_refused_with_the_remedy(make: Any, words: str) -> None:
    with pytest.raises(UnsupportedCupyKernel, match=words):
        make()


# --- ElementwiseKernel ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_the_code_of_an_elementwise_kernel_is_cupy_s_own(version: str) -> None:
    for name, types, axes, narrow, code in cases(version):
        text = elementwise_source(elementwise(name, version), types, axes, narrow).text
        assert _tokens(text) == _tokens(code)


def _tokens(code: str) -> list[str]:
    return [word for line in code.splitlines() if "#include" not in line for word in line.split()]


def test_its_options_and_headers_are_cupy_s(cupy_folder: Path) -> None:
    (cupy_folder / "cupy" / "float16.cuh").touch()
    name, types, axes, narrow, _ = cases(VERSIONS[-1])[2]
    source = elementwise_source(elementwise(name), types, axes, narrow)
    assert "-DEXTRA" in source.options
    assert "#include <cupy/carray.cuh>" in source.text
    assert "#include <cupy/float16.cuh>" in source.text


def test_contiguous_arrays_are_one_axis_and_the_grid_is_cupy_s() -> None:
    call = elementwise_call(elementwise("difference"), (array(64, 5), array(64, 5), array(64, 5)), None, 128)
    assert [one.c_type for one in call.types] == ["CArray<float, 1, 1, 1>"] * 3
    assert (call.axes, call.narrow, call.grid, call.block) == (1, True, 3, 128)
    x, _, _, index = call.arguments
    assert np.frombuffer(x.value.tobytes(), np.int64).tolist() == [0x7F0000000200, 320, 320, 4]
    assert np.frombuffer(index.value.tobytes(), np.int64).tolist() == [320, 320, 0]
    small = elementwise_call(elementwise("difference"), (array(5), array(5), array(5)), None, 128)
    assert (small.grid, small.block) == (1, 5)


def test_an_array_follows_its_buffer() -> None:
    x = array(64, 5)
    call = elementwise_call(elementwise("difference"), (x, x, x), None, 128)
    assert call.arguments[0].array is x
    moved = dataclasses.replace(call.arguments[0], array=array(64, 5, address=0x7F0000100200))
    assert np.frombuffer(moved.value.tobytes(), np.int64).tolist() == [0x7F0000100200, 320, 320, 4]


def test_a_baseline_of_fewer_arguments_is_launched_on_the_same_arrays_and_index() -> None:
    x, z = array(64, 5, address=0x7F0000000200), array(64, 5, address=0x7F0000004210)
    call = elementwise_call(elementwise("difference"), (x, 2.0, z), None, 128)
    kernel = Kernel({"sm_90": make_binary(32, 4, 32, 24)}, device=PlaceholderDevice(), native=None, ptx=str)
    launch = kernel.launch(call.grid, call.block, call.arguments)
    first, _, out, index = launch.identity().arguments
    assert (out, index) == ("CArray float32[320] strides=4 align=16", "CIndexer [320]")
    before = recorded_arguments(make_binary(32, 32, 24), (out, first, index), launch)
    expected = [call.arguments[n].value.tobytes() for n in (0, 2, 3)]
    assert [value.tobytes() for value in before.values(launch)] == expected


def test_axes_are_kept_where_an_array_is_no_contiguous_one() -> None:
    kernel = elementwise("difference")
    row = elementwise_call(kernel, (array(64, 5), array(5), array(64, 5)), None, 128)
    assert [one.c_type for one in row.types] == [f"CArray<float, 2, {flag}, 1>" for flag in (1, 0, 1)]
    assert row.arguments[1].entry == "CArray float32[64,5] strides=0,4"
    four = elementwise_call(kernel, (array(2, 3, 4, 5), array(4, 5), array(2, 3, 4, 5)), None, 128)
    assert [one.axes for one in four.types] == [2, 2, 2]
    assert four.arguments[1].entry == "CArray float32[6,20] strides=0,4"
    every_other = DeviceArray(np.lib.stride_tricks.as_strided(np.zeros(40, "float32"), (4, 5), (40, 8)))
    two = elementwise_call(kernel, (every_other, every_other, every_other), None, 128)
    assert two.axes == 2  # though its axes follow each other: CuPy looks no closer at two
    unmerged = elementwise_call(elementwise("difference", reduce_dims=False), (array(4, 5),) * 3, None, 128)
    assert unmerged.axes == 2


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans(), st.booleans()), min_size=1, max_size=4))
def test_merged_axes_visit_the_same_elements(axes: list[tuple[int, bool, bool]]) -> None:
    shape = tuple(length for length, _, _ in axes)
    x, y = (array(*(1 if one[side] else one[0] for one in axes)) for side in (1, 2))
    call = elementwise_call(elementwise("difference"), (x, y, array(*shape)), None, 128)
    for given_array, made in zip((x, y), call.arguments, strict=False):
        numbered = np.arange(np.prod(given_array.shape)).reshape(given_array.shape)
        numbers = np.frombuffer(made.content, np.int64)[1:]  # behind the number of elements: shape, then strides
        reached = _offsets(*numbers.reshape(2, -1).tolist())
        assert reached == [4 * number for number in np.broadcast_to(numbered, shape).ravel()]


def _offsets(shape: list[int], strides: list[int]) -> list[int]:
    return [sum(n * step for n, step in zip(index, strides, strict=True)) for index in np.ndindex(*shape)]


def test_numbers_take_the_type_of_the_arrays_with_their_letter() -> None:
    call = elementwise_call(
        elementwise("difference"), (array(8, dtype="float64"), 2, array(8, dtype="float64")), None, 128
    )
    assert call.types[1].c_type == "double"
    assert call.arguments[1] == np.float64(2)
    assert call.arguments[1].dtype == "float64"


def test_raw_arrays_keep_their_shape_and_size_says_how_far_the_loop_runs() -> None:
    kernel = elementwise("difference", in_params=_all_raw("in_params"), out_params=_all_raw("out_params"))
    call = elementwise_call(kernel, (array(4, 5), array(4, 5), array(9)), 1000, 256)
    assert [one.axes for one in call.types] == [2, 2, 1]
    assert (call.axes, call.grid, call.block) == (1, 4, 256)


def _all_raw(side: str) -> tuple[Any, ...]:
    return tuple(SimpleNamespace(**{**vars(one), "raw": True}) for one in getattr(elementwise("difference"), side))


def test_more_than_two_gigabytes_want_wide_offsets() -> None:
    big = [DeviceArray(np.broadcast_to(np.float32(0), (1 << 29) + extra), 0x7F0000000200) for extra in (0, 1)]
    kernel = elementwise("difference")
    narrow, wide = (elementwise_call(kernel, (one, one, one), None, 128) for one in big)
    assert (narrow.types[0].narrow, wide.types[0].narrow, wide.narrow) == (True, False, True)


@pytest.mark.parametrize(
    ("args", "size", "words"),
    [
        ((array(8), array(8)), None, r"takes 3 arguments, outputs included \(x, y, z\), and 2 were given"),
        ((array(8), array(8, dtype="int32"), array(8)), None, "argument y is an array of int32, not of float32"),
        ((array(8, dtype="complex256"),) * 3, None, "argument x is an array of complex256"),
        ((1, 2, 3), None, "no array tells the type T of x"),
        ((array(8), array(7), array(8)), None, "shape mismatch"),
        ((array(8), array(8), array(1)), None, r"output z has the shape \(1,\), not \(8,\)"),
        ((array(8), array(8), array(8)), 8, "size= is for kernels whose arrays are all raw"),
        ((array(0), array(0), array(0)), None, "nothing to launch for 0 elements"),
        ((array(8), "two", array(8)), None, "'two' is no float32"),
    ],
)  # fmt: skip
def test_arguments_that_cupy_would_not_take_are_refused(args: Any, size: int | None, words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        elementwise_call(elementwise("difference"), args, size, 128)
