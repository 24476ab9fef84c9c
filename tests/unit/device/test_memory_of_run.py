"""The most memory that one run holds, by the words of both allocators, and the peak of the test that goes on."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from pytest_gpuperf.device.device_errors import UnseenMemory
from pytest_gpuperf.device.memory_use import MemoryUse


class Pool:
    """CuPy's, as far as it is asked: hooks are told of what it gives out and takes back."""

    hooks: list[Any] = []  # noqa: RUF012 one pool

    def malloc(self, size: int) -> None:
        for hook in self.hooks:
            hook.malloc_postprocess(device_id=0, size=size, mem_size=-(-size // 512) * 512, mem_ptr=1, pmem_id=1)

    def free(self, size: int) -> None:
        for hook in self.hooks:
            hook.free_postprocess(device_id=0, mem_size=-(-size // 512) * 512, mem_ptr=1, pmem_id=1)


class MemoryHook:
    def __enter__(self) -> MemoryHook:
        Pool.hooks.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        Pool.hooks.remove(self)


POOL = Pool()


class Memory:
    """What ``cupy.cuda.alloc`` returns, as far as it is given back."""

    def __init__(self, size: int) -> None:
        self._size = size
        POOL.malloc(size)

    def __del__(self) -> None:
        POOL.free(self._size)


CUPY = types.SimpleNamespace(
    cuda=types.SimpleNamespace(MemoryHook=MemoryHook, alloc=Memory),
    get_default_memory_pool=lambda: types.SimpleNamespace(total_bytes=lambda: 0, free_all_blocks=lambda: None),
)


def memory_use() -> MemoryUse:
    return MemoryUse(CUPY)


def test_the_most_that_is_held_at_once_counts_and_not_the_sum() -> None:
    def run() -> None:
        POOL.malloc(1024)
        POOL.free(1024)
        POOL.malloc(1536)
        POOL.malloc(1)
        POOL.free(1536)

    assert memory_use().of_run(run) == 1536 + 512
    assert Pool.hooks == []


def test_a_run_that_fails_leaves_no_hook_behind() -> None:
    with pytest.raises(ZeroDivisionError):
        memory_use().of_run(lambda: 1 / 0)
    assert Pool.hooks == []


class Torch:
    """PyTorch's allocator: bytes now, and the most since the last reset."""

    def __init__(self) -> None:
        self.now, self.most = 5000, 70_000

    def is_initialized(self) -> bool:
        return True

    def memory_allocated(self) -> int:
        return self.now

    def max_memory_allocated(self) -> int:
        return self.most

    max_memory_reserved = max_memory_allocated

    def reset_peak_memory_stats(self) -> None:
        self.most = self.now


def test_memory_of_pytorch_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Torch()
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=torch))
    use = memory_use()

    def run() -> None:
        POOL.malloc(512)
        torch.most = 9000

    assert use.of_run(run) == 512 + 4000


def test_an_allocator_that_tells_nobody_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as RMM's, or CuPy's own MemoryAsyncPool: what a run takes of it would count as nothing."""
    monkeypatch.setattr(CUPY.cuda, "alloc", lambda size: object())
    with pytest.raises(UnseenMemory, match=r"cupy.cuda.set_allocator\(...\) has put another allocator in its place"):
        memory_use().of_run(lambda: POOL.malloc(512))
    assert Pool.hooks == []


def test_cupy_on_the_allocator_of_pytorch_is_counted_there(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Torch()
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=torch))

    def taken(size: int) -> object:
        torch.now = torch.most = torch.now + size
        return object()

    monkeypatch.setattr(CUPY.cuda, "alloc", taken)
    assert memory_use().of_run(lambda: setattr(torch, "most", torch.now + 64)) == 64
