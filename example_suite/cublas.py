"""The vendor's matrix product, to hold one of ours against: C = A B^T in bfloat16 with single-precision sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

FLOAT, BFLOAT16 = 0, 14
"""``cudaDataType_t``."""
SUMS_IN_FLOAT = 68
"""``cublasComputeType_t``."""
DEFAULT_ALGORITHM = -1


def product(a: Any, b: Any, c: Any) -> Callable[[], None]:
    """What launches it: ``a`` is m x k and ``b`` n x k, bfloat16 as 16-bit integers; ``c`` is m x n, float.

    All are row-major CuPy arrays.  Raises ``ImportError`` at its first call where there is no cuBLAS.
    """
    (m, k), (n, _) = a.shape, b.shape
    one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)

    def cublas() -> None:
        import cupy
        from cupy_backends.cuda.libs import cublas as library

        # cuBLAS is column-major: what it sees are the transposed matrices, and their product the other way round.
        library.gemmEx(
            cupy.cuda.device.get_cublas_handle(), library.CUBLAS_OP_T, library.CUBLAS_OP_N, n, m, k,
            one.ctypes.data, b.data.ptr, BFLOAT16, k, a.data.ptr, BFLOAT16, k,
            zero.ctypes.data, c.data.ptr, FLOAT, n, SUMS_IN_FLOAT, DEFAULT_ALGORITHM,
        )  # fmt: skip

    return cublas
