"""Lines of the L2 that a workload asked to persist: no flush evicts them, so they are made ordinary lines before one.

CUDA C++ Programming Guide, "Device Memory L2 Access Management": a part of the L2 is set aside for them by
``cudaLimitPersistingL2CacheSize``.  A driver may set some aside by itself: on an H100 580.159.04 has 9.4 MiB of 50, so
that any kernel with a hint such as ``evict_last`` may leave such lines.
"""

from __future__ import annotations

from typing import Any


class PersistingL2:
    """The part of this context's L2 that is set aside; none without the driver's binding, or in an old one."""

    def __init__(self, driver: Any) -> None:
        """``driver`` is ``cuda.bindings.driver``, or None."""
        known = hasattr(driver, "cuCtxResetPersistingL2Cache")
        self._limit = getattr(getattr(driver, "CUlimit", None), "CU_LIMIT_PERSISTING_L2_CACHE_SIZE", None)
        self._driver: Any = driver if known and self._limit is not None else None

    @property
    def in_use(self) -> bool:
        """Whether some of the L2 is set aside, by a program or by the driver."""
        if self._driver is None:
            return False
        failed, set_aside = self._driver.cuCtxGetLimit(self._limit)
        return not int(failed) and int(set_aside) > 0

    def reset(self) -> None:
        """Make all persisting lines ordinary ones, at once: what was enqueued before has to be over."""
        self._driver.cuCtxResetPersistingL2Cache()
