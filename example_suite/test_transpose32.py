"""Transposing a batch of 32 x 32 matrices: what coalescing and bank conflicts cost.

From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application".
"""

SOURCE = "kernels/transpose32.cu"
ROWS = {
    "transpose_copy": 32,
    "transpose_naive": 32,
    "transpose_coalesced": 32,
    "transpose_padded": 32,
    "transpose_four": 8,
}
"""Of a block of threads: of 32, each has one element; of 8, four."""


def test_transpose_of_a_batch(cuda_kernel, gpu, gpuperf):
    src = gpu.random((200_000, 32, 32), seed=371)

    def measure(name):
        dst = gpu.zeros(src.shape)

        def check():
            gpu.assert_equal(dst, src if name == "transpose_copy" else src.swapaxes(1, 2))

        launch = cuda_kernel(SOURCE, name).launch(grid=(len(src),), block=(32, ROWS[name]), args=(src, dst))
        return gpuperf(launch, bytes=2 * src.nbytes, check=check)

    _copy, naive, coalesced, padded, four = (measure(name) for name in ROWS)

    # With one element per thread, copy and transpose stay below the peak (Little's law); four lift them.
    assert four.time_ns < padded.time_ns <= coalesced.time_ns <= 1.1 * naive.time_ns
