"""The cache on disk: whole entries or none, bounded, shared among processes, and never a reason to fail."""

from __future__ import annotations

import dataclasses
import itertools
import os
from pathlib import Path

import pytest

from pytest_gpuperf.compile import compiler
from pytest_gpuperf.compile.cache import CompileCache, default_folder
from pytest_gpuperf.compile.compile_errors import CompileCacheWarning
from pytest_gpuperf.compile.compiler import compile_for, compile_kernel
from pytest_gpuperf.compile.nvrtc import Compiled
from pytest_gpuperf.compile.source import LINE_INFO, KernelSource

KEY = "ab" + "0" * 62
OTHER = "cd" + KEY[2:]


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("??/*.entry"))


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path)
    keys = [f"{number:02}" + KEY[2:] for number in range(4)]
    for age, key in enumerate(keys[:3]):
        cache.put(key, bytes(100))
        (path,) = tmp_path.glob(f"??/{key}.entry")
        os.utime(path, (1_700_000_000 + age, 1_700_000_000 + age))
    later = CompileCache(tmp_path, max_bytes=350)
    assert later.get(keys[0]) is not None  # the oldest, used again
    later.put(keys[3], bytes(100))
    assert [later.get(key) for key in keys] == [bytes(100), None, bytes(100), bytes(100)]


def unused(cache: CompileCache, words: str) -> None:
    """It warns once and is left alone: warnings are errors here, and a second one would fail."""
    with pytest.warns(CompileCacheWarning, match=words):
        cache.put(OTHER, b"payload")
    cache.put(OTHER, b"payload")
    assert cache.get(KEY) is None
    assert len(entries(cache.folder)) <= 1


def test_a_folder_that_cannot_be_written_warns_once_and_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")  # nothing can be made in it, even by root
    unused(CompileCache(tmp_path / "file" / "cache"), "file/cache cannot be used .*GPUPERF_CACHE_DIR")


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPUPERF_CACHE_DIR", "~/own")
    assert default_folder() == Path.home() / "own"
    monkeypatch.delenv("GPUPERF_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert CompileCache().folder == tmp_path / "xdg" / "pytest-gpuperf"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/xdg")
    assert default_folder() == Path.home() / ".cache" / "pytest-gpuperf"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_folder() == Path.home() / ".cache" / "pytest-gpuperf"


def test_a_folder_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    CompileCache(tmp_path / "cache").put(KEY, b"payload")
    for mode in (0o775, 0o707, 0o1777):
        (tmp_path / "cache").chmod(mode)
        unused(CompileCache(tmp_path / "cache"), rf"other users may write to it, mode {mode:o}; run chmod 700 .*cache")
    (tmp_path / "cache").chmod(0o700)
    assert CompileCache(tmp_path / "cache").get(KEY) == b"payload"


def test_a_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CompileCache(tmp_path).put(KEY, b"payload")
    real = Path.stat

    def of_another(self: Path, **how: bool) -> os.stat_result:
        found = real(self, **how)
        return os.stat_result((*found[:4], 4711, *found[5:])) if self == tmp_path else found

    monkeypatch.setattr(Path, "stat", of_another)
    unused(CompileCache(tmp_path), r"belongs to another user, number 4711.*GPUPERF_CACHE_DIR")


# --- compiled kernels ----------------------------------------------------------------------------

TEXT = """
extern "C" __global__ void copy(float* out, const float* in) { out[threadIdx.x] = in[threadIdx.x]; }
template <typename T, int N> __global__ void fill(T* data) { data[threadIdx.x] = T(N); }
"""


@pytest.fixture
def cache(tmp_path: Path) -> CompileCache:
    return CompileCache(tmp_path / "cache")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Architectures that the compiler really ran for, in order."""
    ran: list[str] = []
    real = compiler.compile_cubin

    def counted(source: KernelSource, arch: str) -> Compiled:
        ran.append(arch)
        return real(source, arch)

    monkeypatch.setattr(compiler, "compile_cubin", counted)
    return ran


def with_header(folder: Path, value: str) -> KernelSource:
    folder.mkdir(exist_ok=True)
    (folder / "value.h").write_text(f"#define VALUE {value}\n")
    text = '#include "value.h"\nextern "C" __global__ void set(float* a) { a[0] = VALUE; }'
    return KernelSource(text, "set", folder / "set.cu")


def test_another_source_option_file_or_template_is_compiled(cache: CompileCache, compiled: list[str]) -> None:
    first = compile_for(KernelSource(TEXT, "copy"), ["sm_90"], cache)
    assert compile_for(KernelSource(TEXT, "copy"), ["sm_90"], CompileCache(cache.folder)) == first
    for number, source in enumerate((
        KernelSource(TEXT, "copy"), KernelSource(TEXT + " ", "copy"), KernelSource(TEXT, "copy", options=("-DX",)),
        KernelSource(TEXT, "copy", Path("other.cu")), KernelSource(TEXT, "fill<int, 1>"),
    ), start=1):  # fmt: skip
        compile_kernel(source, "sm_90", cache=cache)
        assert len(compiled) == number


def test_changed_names_of_the_host_are_compiled_again(
    cache: CompileCache, tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that a source gets without an include."""
    for number, text in enumerate(("", "#define M_PI 3\n", "#define M_PI 3\n")):
        (tmp_path / "names.h").write_text(text)
        monkeypatch.setattr(compiler, "NAMES_OF_THE_HOST", tmp_path / "names.h")
        compile_kernel(KernelSource(TEXT, "copy"), "sm_90", cache=cache)
        assert len(compiled) == min(number + 1, 2)


def test_changed_header_is_compiled_again(cache: CompileCache, tmp_path: Path, compiled: list[str]) -> None:
    places = zip("aaab", ("1.5f", "2.5f", "1.5f", "1.5f"), strict=True)
    made = [compile_kernel(with_header(tmp_path / name, value), "sm_90", cache=cache) for name, value in places]
    assert len(compiled) == 2
    assert made[0] == made[2] == made[3] != made[1]
    for name, option in itertools.product("ab", (LINE_INFO, "--generate-line-info")):
        lined = dataclasses.replace(with_header(tmp_path / name, "1.5f"), options=(option,))
        compile_kernel(lined, "sm_90", cache=cache)
    assert len(compiled) == 6, "line information names the checkout"


def test_an_include_through_a_macro_is_never_cached(cache: CompileCache, tmp_path: Path, compiled: list[str]) -> None:
    source = with_header(tmp_path / "a", "1.5f")
    text = source.text.replace('#include "value.h"', '#define WHICH "value.h"\n#include WHICH')
    for _ in range(2):
        compile_kernel(KernelSource(text, "set", source.path), "sm_90", cache=cache)
    assert len(compiled) == 2


def test_a_damaged_entry_is_compiled_again(cache: CompileCache, compiled: list[str]) -> None:
    first = compile_kernel(KernelSource(TEXT, "copy"), "sm_90", cache=cache)
    for damage in (b"", b"not an entry", b"\xc1"):
        (path,) = entries(cache.folder)
        path.write_bytes(damage)
        assert compile_kernel(KernelSource(TEXT, "copy"), "sm_90", cache=cache) == first
    assert len(compiled) == 4
