"""Kernels that real CuPys were given: what is read of them, the code that is made for them, what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from handed_samples import module, raw

from pytest_gpuperf.compile.adapters.cupy import read_cupy
from pytest_gpuperf.compile.compile_errors import UnsupportedKernel
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource

UNPAIRED = "Give gpuperf a function that launches it with CuPy; its time is then compared without pairs"


@pytest.fixture
def cupy_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed CuPy, as far as its folder of headers goes."""
    headers = tmp_path / "_core" / "include"
    (headers / "cupy").mkdir(parents=True)
    installed = ModuleType("handed_samples")
    installed.__file__ = str(tmp_path / "__init__.py")
    monkeypatch.setitem(sys.modules, "handed_samples", installed)
    return headers


def source_of(kernel: Any, name: str | None = None) -> KernelSource:
    source = read_cupy(kernel, name).source
    assert source is not None
    return source


# --- RawKernel and RawModule ---------------------------------------------------------------------


def test_a_raw_kernel_is_compiled_from_its_own_source_and_options() -> None:
    code = read_cupy(raw("scale"))
    source = code.source
    assert source is not None
    assert (source.name, source.options, source.compiler) == ("scale", ("--use_fast_math",), "nvrtc")
    binary = compile_kernel(source, "sm_90")
    assert [parameter.size for parameter in binary.parameters] == [8, 4, 4]
    assert binary.source_hash
    assert not code.cooperative


def test_nvcc_and_cooperative_launches_are_kept() -> None:
    code = read_cupy(raw("scale", backend="nvcc", enable_cooperative_groups=True, options=()))
    assert code.cooperative
    assert code.source is not None
    assert (code.source.compiler, code.source.options) == ("nvcc", ("--std=c++17", "-ftz=true"))


def test_cupy_s_folders_are_searched_as_cupy_does_its_cccl_first(cupy_folder: Path) -> None:
    source = source_of(raw("scale"))
    cccl = [f"-I{cupy_folder / 'cupy/_cccl' / part}" for part in ("cub", "thrust", "libcudacxx")]
    assert list(source.options) == [*cccl, "--use_fast_math", f"-I{cupy_folder}"]


def test_a_template_of_a_module_is_known_by_its_name_expression() -> None:
    source = source_of(module("copies"), "copy<int>")
    assert compile_kernel(source, "sm_90").name == "copy<int>"


def test_a_function_of_a_module_is_known_by_the_name_expression_of_its_symbol() -> None:
    """A RawModule of CuPy 14 gives it the symbol for a name, and the name expressions of the whole module."""
    expressions = ["copy<int>", "copy< float >"]
    code = read_cupy(raw("scale", name="_Z4copyIfEvPT_", name_expressions=expressions))
    assert code.source is not None
    assert (code.name, code.source.expression) == ("copy< float >", "copy< float >")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: read_cupy(raw("scale"), "other"), "a RawKernel has its name; name='other' is for a RawModule"),
        (
            lambda: read_cupy(raw("scale", name="_Z4copyIfEvPT_", name_expressions=["copy<real>"])),
            "give the module and the name expression, from_cupy\\(module, 'copy<real>'\\)",
        ),
        (
            lambda: read_cupy(raw("scale", translate_cucomplex=True)),
            f"CuPy translates its cuComplex.h .*{UNPAIRED}",
        ),
        (lambda: read_cupy(module("copies")), "takes a RawModule with the name of a kernel"),
        (lambda: read_cupy(SimpleNamespace()), f"with the name of a kernel, not SimpleNamespace.* {UNPAIRED}"),
        (lambda: read_cupy(print), "not builtin_function_or_method"),
    ],
)
def test_what_is_no_kernel_of_cupy_s_is_refused_with_the_remedy(make: Any, words: str) -> None:
    with pytest.raises(UnsupportedKernel, match=words):
        make()
