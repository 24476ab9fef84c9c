"""A compiler that makes several machine codes of one source: the one on record is asked for again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_gpuperf.compile import compilations
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compiler import as_recorded, compile_kernel
from pytest_gpuperf.compile.nvrtc import Compiled, Program
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.model.evidence import KernelBinary

TEXT = """
#ifndef FORM
#define FORM 1.0f
#endif
extern "C" __global__ void work(float* a) { a[threadIdx.x] = a[threadIdx.x] * FORM + 2.0f; }
"""
SOURCE = KernelSource(TEXT, "work")
ARCH = "sm_90"
Forms = Callable[[str], None]


def in_form(text: str, value: str) -> str:
    return text.replace("#ifndef FORM", f"#define FORM {value}\n#ifndef FORM")


def form(value: str) -> KernelBinary:
    """Of the source as it would be in this form."""
    return compile_kernel(
        KernelSource(TEXT.replace("#ifndef FORM", f"#define FORM {value}\n#ifndef FORM"), "work"), ARCH
    )


@pytest.fixture
def cache(tmp_path: Path) -> CompileCache:
    return CompileCache(tmp_path)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Forms that the compiler gave, in order; ``forms`` says which."""
    return []


@pytest.fixture
def forms(monkeypatch: pytest.MonkeyPatch, runs: list[str]) -> Forms:
    real = compilations.compile_cubin

    def given(values: str) -> None:
        coming: Iterator[str] = iter(values.split())

        def compile_cubin(program: Program, arch: str) -> Compiled:
            value = next(coming)
            runs.append(value)
            return real(program._replace(text=in_form(program.text, value)), arch)

        monkeypatch.setattr(compilations, "compile_cubin", compile_cubin)

    return given


def test_the_form_on_record_is_found_and_takes_the_place_of_the_other(
    cache: CompileCache, forms: Forms, runs: list[str]
) -> None:
    wanted = form("3.0f").profile.code_hash
    forms("2.0f 4.0f 2.0f 3.0f")
    first = compile_kernel(SOURCE, ARCH, cache=cache)
    found = as_recorded(SOURCE, first, {wanted}, cache)
    assert first.profile.code_hash != wanted
    assert found.profile.code_hash == wanted
    assert (found.name, found.symbol, found.source_hash) == (first.name, first.symbol, first.source_hash)
    assert compile_kernel(SOURCE, ARCH, cache=cache) == found
    assert runs == ["2.0f", "4.0f", "2.0f", "3.0f"]


def test_five_alike_are_all_there_are(cache: CompileCache, forms: Forms, runs: list[str]) -> None:
    forms("2.0f 2.0f 2.0f 2.0f 2.0f 2.0f 3.0f")
    first = compile_kernel(SOURCE, ARCH, cache=cache)
    assert as_recorded(SOURCE, first, {"00"}, cache) == first
    assert len(runs) == 6


def test_a_compiler_that_varies_is_asked_nine_times_and_not_in_the_next_run(
    cache: CompileCache, forms: Forms, runs: list[str]
) -> None:
    forms("2.0f 2.0f 4.0f 2.0f 2.0f 2.0f 4.0f 2.0f 2.0f 2.0f 3.0f")
    first = compile_kernel(SOURCE, ARCH, cache=cache)
    for _ in range(2):
        assert as_recorded(SOURCE, first, {"00"}, cache) == first
    assert len(runs) == 10


def test_another_record_is_another_wish(cache: CompileCache, forms: Forms, runs: list[str]) -> None:
    wanted = form("3.0f").profile.code_hash
    forms("2.0f 2.0f 2.0f 2.0f 2.0f 2.0f 3.0f")
    first = compile_kernel(SOURCE, ARCH, cache=cache)
    assert as_recorded(SOURCE, first, {"00"}, cache) == first
    assert as_recorded(SOURCE, first, {wanted, "00"}, cache).profile.code_hash == wanted


def test_without_a_cache_it_is_searched_all_the_same(forms: Forms) -> None:
    wanted = form("3.0f").profile.code_hash
    forms("2.0f 3.0f")
    first = compile_kernel(SOURCE, ARCH)
    assert as_recorded(SOURCE, first, {wanted}).profile.code_hash == wanted
