"""Copying while computing: chunks on several streams keep the copy engine and the SMs busy at the same time.

From the "Optimization" chapter of a CUDA course, and the GTC 2023 talk "What the profiler is telling you: optimizing
your CUDA application".  The time of a callable is the sum of its copies and kernels, or as here the elapsed time, which
is less where they overlap.
"""

import numpy as np
import pytest

SOURCE = "kernels/streams_overlap.cu"
VARIANTS = {"serial": (1, 1), "two_streams": (2, 2), "n_chunks": (4, 16)}
"""Streams and chunks."""
STEPS = 1601
"""Odd: every step makes 1 - x of x, exactly.  About as long as the copy on an H200."""


def chunked(kernel, gpu, values, streams, chunks, from_disk=False):
    """What copies and computes, its launches and its result; from a disk, the host reads a piece while others run."""
    import cupy
    import cupyx

    host = cupyx.empty_pinned(values.size, values.dtype)
    host[:] = 0 if from_disk else values
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(streams)]
    given, out, length = gpu.empty(host.size), gpu.empty(host.size), host.size // chunks
    pieces = [slice(first, first + length) for first in range(0, host.size, length)]
    args = [(out[piece], given[piece], length, STEPS, -1.0, 1.0) for piece in pieces]
    launches = [kernel.launch(grid=(length // 256,), block=(256,), args=each) for each in args]

    def work():
        current = cupy.cuda.get_current_stream()
        for stream in streams:
            stream.wait_event(current.record(cupy.cuda.Event(disable_timing=True)))
        for number, piece in enumerate(pieces):
            if from_disk:
                host[piece] = values[piece]
            with streams[number % len(streams)] as stream:
                given[piece].set(host[piece], stream=stream)
                launches[number]()
        for stream in streams:
            current.wait_event(stream.record(cupy.cuda.Event(disable_timing=True)))

    return work, launches, out


def test_reading_ahead_from_a_disk(cuda_kernel, gpu):
    kernel, on_disk = cuda_kernel(SOURCE, "iterate"), np.random.default_rng(261).random(2**20, dtype=np.float32)
    work, _, out = chunked(kernel, gpu, on_disk, 4, 8, from_disk=True)
    work()
    np.testing.assert_array_equal(gpu.to_host(out), 1 - on_disk)


@pytest.mark.gpuperf(budget_s=0.5, cache="warm", tolerance=0.1)  # what goes over PCIe is not alone there
def test_copies_beside_kernels(cuda_kernel, gpu, gpuperf, record_property):
    kernel, values = cuda_kernel(SOURCE, "iterate"), np.random.default_rng(262).random(2**25, dtype=np.float32)
    expected = 1 - gpu.array(values)
    works = {}
    for name, variant in VARIANTS.items():
        works[name], launches, out = chunked(kernel, gpu, values, *variant)
        gpuperf(works[name], name=name, check=lambda out=out: gpu.assert_equal(out, expected), measure=("elapsed",))
        works.setdefault("kernel", launches[0].__call__)  # the whole of serial's; benchmark asks for a name

    from cupyx.profiler import benchmark

    elapsed = {name: benchmark(work, n_repeat=5).gpu_times.min() for name, work in works.items()}
    record_property("serial / n_chunks", elapsed["serial"] / elapsed["n_chunks"])
    busier = max(elapsed["kernel"], elapsed["serial"] - elapsed["kernel"])
    record_property("busier engine / n_chunks", busier / elapsed["n_chunks"])
    assert elapsed["n_chunks"] < elapsed["two_streams"] < elapsed["serial"]
