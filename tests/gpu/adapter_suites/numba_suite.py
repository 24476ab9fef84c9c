"""Kernels of Numba, each launched by this plugin and by Numba: both do the same."""

import math

import cupy
import numpy as np
import pytest
from numba import cuda, float32, int32, void

N = 1 << 22
STEPS = 40
TILE = 16
WIDTH = TILE + 1


@cuda.jit
def decay(x, out):
    i = cuda.grid(1)
    if i < x.size:
        value = x[i]
        for _ in range(STEPS):
            value = value * float32(0.999) + float32(0.001)
        out[i] = value


@cuda.jit(max_registers=32)
def transpose(x, out):
    tile = cuda.shared.array((TILE, WIDTH), dtype=float32)
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        tile[cuda.threadIdx.x, cuda.threadIdx.y] = x[i, j]
    cuda.syncthreads()
    i = cuda.blockIdx.x * TILE + cuda.threadIdx.y
    j = cuda.blockIdx.y * TILE + cuda.threadIdx.x
    if i < x.shape[0] and j < x.shape[1]:
        out[j, i] = tile[cuda.threadIdx.y, cuda.threadIdx.x]


@cuda.jit(device=True)
def sigmoid(value):
    return float32(1) / (float32(1) + math.exp(-value))


@cuda.jit(fastmath=True)
def activate(x, out, by, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = sigmoid(x[i] * by)


def same_as_numba(cuda_kernel, gpuperf, kernel, signature, grid, block, args, out):
    by_numba = cupy.zeros_like(out)
    cuda.synchronize()  # Numba has a stream of its own
    kernel[grid, block](*(by_numba if one is out else one for one in args))
    cuda.synchronize()
    launch = cuda_kernel.from_numba(kernel, signature).launch(grid, block, args)
    gpuperf(launch, check=lambda: cupy.testing.assert_allclose(out, by_numba, rtol=1e-5))


def test_decay(cuda_kernel, gpu, gpuperf):
    x, out = gpu.random(N, seed=1), gpu.zeros(N)
    same_as_numba(cuda_kernel, gpuperf, decay, void(float32[::1], float32[::1]), N // 256, 256, (x, out), out)


def test_transpose(cuda_kernel, gpu, gpuperf):
    x, out = gpu.random((2048, 1024), seed=1), gpu.zeros((1024, 2048))
    signature = void(float32[:, ::1], float32[:, ::1])
    grid = (2048 // TILE, 1024 // TILE)
    same_as_numba(cuda_kernel, gpuperf, transpose, signature, grid, (TILE, TILE), (x, out), out)


@pytest.mark.parametrize("by", [np.float32(0.5), np.float32(2.0)])
def test_activate(cuda_kernel, gpu, gpuperf, by):
    x, out = gpu.random(N, seed=1), gpu.zeros(N)
    signature = void(float32[::1], float32[::1], float32, int32)
    same_as_numba(cuda_kernel, gpuperf, activate, signature, N // 256, 256, (x, out, by, np.int32(N)), out)
