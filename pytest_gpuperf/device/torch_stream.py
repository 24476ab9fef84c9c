"""PyTorch on the plugin's stream, for as long as a workload runs.

PyTorch keeps a current stream of its own, and Triton launches there too: what they run would be neither behind
the flush of the L2 nor in a captured graph.  PyTorch itself is never imported here.
"""

from __future__ import annotations

import contextlib
import sys
from contextlib import AbstractContextManager
from typing import Any


def torch_follows(stream: int) -> AbstractContextManager[Any]:
    """Inside, PyTorch's current stream is ``stream``, a ``cudaStream_t``; nothing happens if it uses no GPU yet."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return contextlib.nullcontext()
    return cuda.stream(cuda.ExternalStream(stream))  # type: ignore[no-any-return]
