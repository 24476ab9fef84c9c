"""Copying while computing.

From the "Optimization" chapter of a CUDA course, and the GTC 2023 talk "What the profiler is telling you: optimizing
your CUDA application".

The plugin's time of a callable is the sum of what its copies and kernels take, wherever they run: it does not tell
whether they overlap.  So the times compared here are elapsed ones, between two events around all streams.
"""

import contextlib
from typing import NamedTuple

import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/streams_overlap.cu"
BLOCK = 256
CHUNKS = 16
VARIANTS = {"serial": (1, 1), "two_streams": (2, 2), "n_chunks": (4, CHUNKS)}
"""Streams and chunks."""
STEPS = 1601
"""Odd: every step makes 1 - x of x, exactly.  About as long as the copy on an H200."""


class Part(NamedTuple):
    """One chunk."""

    host: np.ndarray
    given: object
    launch: object


def grid_over(n):
    return (blocks_over(n, BLOCK),)


@contextlib.contextmanager
def forked(streams):
    """What is enqueued on the streams comes after all that the current stream has, and before all that it will have."""
    import cupy

    def let_wait(waiting, stream):
        event = cupy.cuda.Event(disable_timing=True)
        event.record(stream)
        for each in waiting:
            each.wait_event(event)

    current = cupy.cuda.get_current_stream()
    let_wait(streams, current)
    yield
    for stream in streams:
        let_wait([current], stream)


def new_streams(count):
    import cupy

    return [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]


class ChunkedWork:
    """Copies ``host`` to the GPU and iterates on it, chunk by chunk, on streams by turns."""

    def __init__(self, kernel, gpu, host, streams, chunks, steps=STEPS):
        self._streams = new_streams(streams)
        self.out = gpu.empty(host.size)
        given = gpu.empty(host.size)
        length = host.size // chunks
        pieces = [slice(first, first + length) for first in range(0, host.size, length)]
        args = [(self.out[piece], given[piece], length, steps, -1.0, 1.0) for piece in pieces]
        launches = [kernel.launch(grid=grid_over(length), block=(BLOCK,), args=each) for each in args]
        self.parts = [Part(host[p], given[p], launch) for p, launch in zip(pieces, launches, strict=True)]

    def __call__(self, mark=lambda: None, read=lambda _: None):
        """``mark`` is called before and after each copy and after each kernel; ``read`` brings a chunk to the host."""
        with forked(self._streams):
            for number, part in enumerate(self.parts):
                read(part)
                with self._streams[number % len(self._streams)] as stream:
                    mark()
                    part.given.set(part.host, stream=stream)
                    mark()
                    part.launch()
                    mark()

    def milestones(self):
        """When each chunk's copy began to wait, was done, and its kernel was done: rows of milliseconds."""
        import cupy

        events = []

        def mark():
            events.append(cupy.cuda.Event())
            events[-1].record()

        mark()
        self(mark)
        cupy.cuda.get_current_stream().synchronize()
        after_start = [cupy.cuda.get_elapsed_time(events[0], event) for event in events[1:]]
        return np.array(after_start).reshape(-1, 3)


class CopyAndCompute:
    """A copy, and then a kernel that does not need it: on one stream, or each on one of its own."""

    def __init__(self, host, target, compute=None, streams=1):
        self._host = host
        self._target = target
        self._compute = compute
        self._streams = new_streams(streams)

    def __call__(self):
        with forked(self._streams):
            with self._streams[0] as stream:
                self._target.set(self._host, stream=stream)
            if self._compute is not None:
                with self._streams[-1]:
                    self._compute()


def copied_beside_kernels(milestones):
    """Share of the time spent on copies in which another chunk's kernel ran.

    A copy that waits for the copy engine starts when the one before it is done.
    """
    began, copied, computed = milestones.T
    done_before = np.where(copied < copied[:, None], copied, -np.inf).max(axis=1)
    started = np.maximum(began, done_before)
    overlap = np.minimum(copied[:, None], computed) - np.maximum(started[:, None], copied)
    np.fill_diagonal(overlap, 0)
    return float(overlap.clip(min=0).max(axis=1).sum() / (copied - started).sum())


def elapsed_ms(work):
    """Of the best of five runs."""
    return min(elapsed_once_ms(work) for _ in range(5))


def elapsed_by_turns_ms(*works):
    """Of the best of seven runs of each; all of them see the host as it is at the time."""
    rounds = [[elapsed_once_ms(work) for work in works] for _ in range(7)]
    return [min(runs) for runs in zip(*rounds, strict=True)]


def elapsed_once_ms(work):
    import cupy

    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    work()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(start, end)


def pinned_copy(host):
    import cupyx

    pinned = cupyx.empty_pinned(host.shape, host.dtype)
    pinned[...] = host
    return pinned


def test_overlap_is_told_from_milestones():
    chunks = np.arange(4.0)
    in_turn = np.stack([2 * chunks, 2 * chunks + 1, 2 * chunks + 2], axis=1)
    assert copied_beside_kernels(in_turn) == 0
    at_once = np.stack([0 * chunks, chunks + 1, chunks + 2], axis=1)
    assert copied_beside_kernels(at_once) == 3 / 4  # there is nothing to compute during the first copy


def test_steps_are_taken(cuda_kernel, gpu):
    n, steps = 10_007, 7
    given = gpu.random(n, seed=260)
    out = gpu.zeros(n)
    kernel = cuda_kernel(SOURCE, "iterate")
    kernel.launch(grid=grid_over(n), block=(BLOCK,), args=(out, given, n, steps, 0.875, 0.25))()
    power = 0.875**steps
    expected = power * gpu.to_host(given).astype(np.float64) + 0.25 * (1 - power) / (1 - 0.875)
    np.testing.assert_allclose(gpu.to_host(out), expected, rtol=1e-5)


def test_reading_ahead_from_a_disk(cuda_kernel, gpu):
    """The host reads a chunk while the GPU has those before it."""
    kernel = cuda_kernel(SOURCE, "iterate")
    on_disk = np.random.default_rng(261).random(2**20, dtype=np.float32)
    host = pinned_copy(np.zeros_like(on_disk))
    work = ChunkedWork(kernel, gpu, host, streams=4, chunks=8)
    chunks = iter(on_disk.reshape(8, -1))
    work(read=lambda part: np.copyto(part.host, next(chunks)))
    np.testing.assert_array_equal(gpu.to_host(work.out), 1 - on_disk)


@pytest.mark.gpuperf(budget_s=0.5, cache="warm", tolerance=0.1)  # what goes over PCIe is not alone there
def test_copies_beside_kernels(cuda_kernel, gpu, gpuperf, claim):
    kernel = cuda_kernel(SOURCE, "iterate")
    pageable = np.random.default_rng(262).random(2**25, dtype=np.float32)
    host = pinned_copy(pageable)
    expected = 1 - gpu.array(host)

    def measure(name):
        work = ChunkedWork(kernel, gpu, host, *VARIANTS[name])
        return gpuperf(work, name=name, check=lambda: gpu.assert_equal(work.out, expected))

    serial, _, chunked = [measure(name) for name in VARIANTS]

    assert chunked.time_ns >= 0.8 * serial.time_ns  # no work is saved, only time

    # From here on by events, with as many steps as make the kernel take as long as the copy.
    target = gpu.empty(host.size)
    copy_ms = elapsed_ms(CopyAndCompute(host, target))
    kernel_ms = elapsed_ms(ChunkedWork(kernel, gpu, host, *VARIANTS["serial"]).parts[0].launch)

    def steps_for(ms):
        """That a kernel takes so long for."""
        return round(STEPS * ms / kernel_ms) // 2 * 2 + 1

    steps = steps_for(copy_ms)
    works = {name: ChunkedWork(kernel, gpu, host, *variant, steps) for name, variant in VARIANTS.items()}
    elapsed = {name: elapsed_ms(work) for name, work in works.items()}
    busiest_ms = max(copy_ms, elapsed_ms(works["serial"].parts[0].launch))

    one_stream = ChunkedWork(kernel, gpu, host, 1, CHUNKS, steps)
    assert copied_beside_kernels(one_stream.milestones()) <= 0.01
    claim("STR-03", copied_beside_kernels(works["n_chunks"].milestones()))

    def gain_of_a_second_stream(source):
        """2 if the copy of ``source`` overlaps with a kernel that takes as long."""
        long = steps_for(elapsed_ms(CopyAndCompute(source, target)))
        compute = ChunkedWork(kernel, gpu, host, 1, 1, long).parts[0].launch
        in_turn, beside = elapsed_by_turns_ms(*(CopyAndCompute(source, target, compute, streams) for streams in (1, 2)))
        return in_turn / beside

    # The control: from pageable memory the call that copies returns when it is done, and the gain is gone.
    claim("STR-02", gain_of_a_second_stream(pageable))
    assert gain_of_a_second_stream(host) >= 1.4  # the same from pinned memory
    assert busiest_ms <= 0.65 * elapsed["serial"]
    claim("STR-04", busiest_ms / elapsed["n_chunks"])
    claim("STR-05", elapsed["serial"] / elapsed["two_streams"])
    claim("STR-01", elapsed["serial"] / elapsed["n_chunks"])
