"""Kernels that real CuPys were given: what is read of them, the code that is made for them, what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from cupy_samples import VERSIONS, module, raw

from pytest_gpuperf.compile.adapters.cupy import read_cupy, source_of
from pytest_gpuperf.compile.compile_errors import UnsupportedKernel
from pytest_gpuperf.compile.compiler import compile_kernel

UNPAIRED = "Give gpuperf a function that launches it with CuPy; its time is then compared without pairs"


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
        (lambda: read_cupy(SimpleNamespace()), f"with the name of a kernel, not SimpleNamespace.* {UNPAIRED}"),
        (lambda: read_cupy(print), "not builtin_function_or_method"),
    ],
)
def test_what_is_no_kernel_of_cupy_s_is_refused_with_the_remedy(make: Any, words: str) -> None:
    with pytest.raises(UnsupportedKernel, match=words):
        make()
