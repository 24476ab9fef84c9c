"""The library of NVIDIA's driver, which the operating system finds by this name."""

from __future__ import annotations

import sys

DRIVER_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
