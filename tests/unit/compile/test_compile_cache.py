"""The cache on disk: whole entries or none, bounded, shared among processes, and never a reason to fail."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
from pathlib import Path

import pytest

from pytest_gpuperf.compile import compiler
from pytest_gpuperf.compile.cache import CompileCache, default_folder
from pytest_gpuperf.compile.compile_errors import CompileCacheWarning, UnknownKernel
from pytest_gpuperf.compile.compiler import compile_for, compile_kernel
from pytest_gpuperf.compile.machine_code import sass
from pytest_gpuperf.compile.nvrtc import Compiled
from pytest_gpuperf.compile.source import KernelSource

KEY = "ab" + "0" * 62


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
    assert [later.get(key) is not None for key in keys] == [True, False, True, True]


def _write_and_read(folder: str, seed: int) -> int:
    cache = CompileCache(Path(folder), max_bytes=40_000)
    for step in range(60):
        name = f"{(seed * 7 + step) % 20:02}" + KEY[2:]
        cache.put(name, name.encode() * 40)
        found = cache.get(name)
        if found is not None and found != name.encode() * 40:
            return 1
    return 0


def test_processes_share_a_folder(tmp_path: Path) -> None:
    fresh = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    with concurrent.futures.ProcessPoolExecutor(4, mp_context=fresh) as pool:
        assert list(pool.map(_write_and_read, [str(tmp_path)] * 4, range(4))) == [0, 0, 0, 0]


@pytest.fixture
def unwritable(tmp_path: Path) -> Path:
    """A folder in which nothing can be made, even by root: its parent is a file."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "cache"


def test_a_folder_that_cannot_be_written_warns_once_and_is_left_alone(unwritable: Path) -> None:
    cache = CompileCache(unwritable)
    with pytest.warns(CompileCacheWarning, match=f"{unwritable} cannot be used .*GPUPERF_CACHE_DIR"):
        cache.put(KEY, b"payload")
    cache.put(KEY, b"payload")  # warnings are errors here: a second one would fail
    assert cache.get(KEY) is None


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(tmp_path / "own"))
    assert default_folder() == tmp_path / "own"
    monkeypatch.delenv("GPUPERF_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert CompileCache().folder == tmp_path / "xdg" / "pytest-gpuperf"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/xdg")
    assert default_folder() == Path.home() / ".cache" / "pytest-gpuperf"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_folder() == Path.home() / ".cache" / "pytest-gpuperf"


# --- what another one may have put there ---------------------------------------------------------

OTHER = "cd" + KEY[2:]


@pytest.mark.parametrize("mode", [0o775, 0o707, 0o1777])
def test_a_folder_that_others_may_write_is_not_used_and_said_once(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "cache"
    CompileCache(folder).put(KEY, b"payload")
    folder.chmod(mode)
    cache = CompileCache(folder)
    with pytest.warns(CompileCacheWarning, match=rf"other users may write it, mode {mode:o}; chmod 700 .*cache"):
        assert cache.get(KEY) is None
    cache.put(OTHER, b"payload")  # warnings are errors here: a second one would fail
    assert cache.get(KEY) is None
    assert len(entries(folder)) == 1
    folder.chmod(0o700)
    assert CompileCache(folder).get(KEY) == b"payload"


def test_a_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    CompileCache(folder).put(KEY, b"payload")
    real = Path.stat

    def of_another(self: Path, **how: bool) -> os.stat_result:
        found = real(self, **how)
        return os.stat_result((*found[:4], 4711, *found[5:])) if self == folder else found

    monkeypatch.setattr(Path, "stat", of_another)
    cache = CompileCache(folder)
    with pytest.warns(CompileCacheWarning, match=r"belongs to another user, number 4711.*GPUPERF_CACHE_DIR"):
        assert cache.get(KEY) is None
    cache.put(OTHER, b"payload")
    assert len(entries(folder)) == 1


# --- compiled kernels ----------------------------------------------------------------------------

TEXT = """
extern "C" __global__ void copy(float* out, const float* in) { out[threadIdx.x] = in[threadIdx.x]; }
template <typename T, int N> __global__ void fill(T* data) { data[threadIdx.x] = T(N); }
"""
ARCHS = ("sm_80", "sm_90")


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


def test_a_second_time_comes_from_the_cache(cache: CompileCache, compiled: list[str]) -> None:
    first = compile_for(KernelSource(TEXT, "copy"), ARCHS, cache)
    assert sorted(compiled) == [*ARCHS]
    assert compile_for(KernelSource(TEXT, "copy"), ARCHS, CompileCache(cache.folder)) == first
    assert len(compiled) == 2


@pytest.mark.parametrize(
    "other",
    [
        KernelSource(TEXT + " ", "copy"),
        KernelSource(TEXT, "copy", options=("-DX",)),
        KernelSource(TEXT, "copy", Path("other.cu")),
        KernelSource(TEXT, "fill<int, 1>"),
    ],
)
def test_another_source_option_file_or_template_is_compiled(
    cache: CompileCache, compiled: list[str], other: KernelSource
) -> None:
    compile_kernel(KernelSource(TEXT, "copy"), "sm_90", cache=cache)
    compile_kernel(other, "sm_90", cache=cache)
    assert len(compiled) == 2


def test_a_source_with_a_header_is_compiled_once_for_two_checkouts(
    cache: CompileCache, tmp_path: Path, compiled: list[str]
) -> None:
    for name in "ab":
        compile_kernel(with_header(tmp_path / name, "1.5f"), "sm_90", cache=cache)
    assert len(compiled) == 1


def test_a_header_that_one_folder_lacks_is_no_header_of_the_other(
    cache: CompileCache, tmp_path: Path, compiled: list[str]
) -> None:
    text = '#if __has_include("own.cuh")\n#include "own.cuh"\n#endif\n' + TEXT
    for name in "ab":
        (tmp_path / name).mkdir()
    (tmp_path / "b/own.cuh").write_text("#define copy scale_copy\n")
    compile_kernel(KernelSource(text, "copy", tmp_path / "a/same.cu"), "sm_90", cache=cache)
    with pytest.raises(UnknownKernel):
        compile_kernel(KernelSource(text, "copy", tmp_path / "b/same.cu"), "sm_90", cache=cache)
    assert len(compiled) == 2


def test_a_changed_header_is_compiled_again_and_one_changed_back_is_not(
    cache: CompileCache, tmp_path: Path, compiled: list[str]
) -> None:
    made = [compile_kernel(with_header(tmp_path / "a", v), "sm_90", cache=cache) for v in ("1.5f", "2.5f", "1.5f")]
    assert len(compiled) == 2
    assert made[0] == made[2] != made[1]


def test_an_include_through_a_macro_is_never_cached(cache: CompileCache, tmp_path: Path, compiled: list[str]) -> None:
    source = with_header(tmp_path / "a", "1.5f")
    text = source.text.replace('#include "value.h"', '#define WHICH "value.h"\n#include WHICH')
    for _ in range(2):
        compile_kernel(KernelSource(text, "set", source.path), "sm_90", cache=cache)
    assert len(compiled) == 2


@pytest.mark.parametrize("damage", [b"", b"not an entry", b"\xc1"])
def test_a_damaged_entry_is_compiled_again(cache: CompileCache, compiled: list[str], damage: bytes) -> None:
    first = compile_kernel(KernelSource(TEXT, "copy"), "sm_90", cache=cache)
    for path in entries(cache.folder):
        path.write_bytes(damage)
    assert compile_kernel(KernelSource(TEXT, "copy"), "sm_90", cache=cache) == first
    assert len(compiled) == 2


@pytest.mark.parametrize("name", ["fill<int, 1>", "copy"])
def test_a_cubin_on_record_is_not_disassembled_and_its_evidence_is_the_same(
    cache: CompileCache, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    known = compile_for(KernelSource(TEXT, name), ARCHS)
    profiles = {binary.profile.code_hash: binary.profile for binary in known.values()}
    monkeypatch.delattr(sass, "run_nvdisasm")
    for _ in range(2):
        assert compile_for(KernelSource(TEXT, name), ARCHS, cache, recorded=profiles) == known
