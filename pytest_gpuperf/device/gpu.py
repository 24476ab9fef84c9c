"""``gpu``: the GPU as a test sees it: facts, seeded arrays, measured peaks and comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from pytest_gpuperf.device import result_comparison
from pytest_gpuperf.device.device_errors import DeviceNeeded
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.device.number_types import from_bytes, tensor_to_host
from pytest_gpuperf.device.placeholder import PlaceholderDevice
from pytest_gpuperf.model.device_facts import DeviceFacts
from pytest_gpuperf.model.roofs import ROOFS

__tracebackhide__ = True  # of pytest: an error is shown at the test's line


class Gpu:
    """The GPU of this process.

    The fields of ``DeviceFacts`` are attributes: ``name``, ``arch``, ``compute_capability``, ``sm_count``,
    ``l2_bytes``, ``memory_bytes``, ``shared_bytes_per_block_optin``, ``max_threads_per_sm``, ``driver``...
    Without a GPU they are those of a typical one, and arrays have no data.  The first use of data, of a measured
    peak or of a comparison raises ``DeviceNeeded``, which ends the test as *static only*.
    """

    def __init__(
        self, device: Device, *, before_work: Callable[[], None] = lambda: None, no_peaks: Exception | None = None,
        roofs: Mapping[str, float] | None = None,
    ) -> None:  # fmt: skip
        """``before_work`` is called before anything is put to the GPU: other processes may be measuring on it.

        ``no_peaks`` is raised by whoever asks for a measured peak, where none may be measured.  ``roofs`` are
        recorded ones, which are not measured again.
        """
        self._device, self._before_work, self._no_peaks = device, before_work, no_peaks
        self.measured_peaks: dict[str, float] = dict(roofs or {})
        """Ceilings that are recorded or were asked for so far, by name."""

    def __getattr__(self, name: str) -> Any:
        """A fact about the GPU."""
        if not name.startswith("_") and hasattr(self._device.facts, name):
            return getattr(self._device.facts, name)
        raise AttributeError(f"gpu has no attribute {name!r}: dir(gpu) lists all", name=name, obj=self)

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *DeviceFacts.__struct_fields__, "arch"})

    @property
    def facts(self) -> DeviceFacts:
        """All of them."""
        return self._device.facts

    @property
    def available(self) -> bool:
        """True if there is a GPU."""
        return not isinstance(self._device, PlaceholderDevice)

    @property
    def stream(self) -> int:
        """The CUDA stream that workloads are measured on, a ``cudaStream_t`` as an integer.

        CuPy and PyTorch launch there by themselves; pass it to other libraries, to Numba as
        ``numba.cuda.external_stream(gpu.stream)``.
        """
        return self._device.stream_pointer

    @property
    def _arrays(self) -> Any:
        self._before_work()
        return self._device.arrays

    def random(
        self, shape: Any, dtype: Any = "float32", *, seed: int, low: float | None = None, high: float | None = None
    ) -> Any:
        """An array of random numbers that depend on seed, shape and type alone, the same on every GPU.

        Uniform in [low, high): [0, 1) for floating-point and complex types (both parts), [0, 100) for
        integers, both values for bool.  With the package ``ml_dtypes`` a type may be ``"bfloat16"``,
        ``"float8_e4m3fn"``, ``"float8_e5m2"`` or ``"float4_e2m1fn"``.  CuPy has no fp8 and no fp4: they are arrays of
        uint8, of fp4 with two values in a byte; they are rounded, so ``high`` may be among them.
        Raises ``ValueError`` for an empty range or a type that is no number, ``BadArgument`` without ``ml_dtypes``.
        """
        return self._arrays.random(shape, dtype, seed=seed, low=low, high=high)

    def empty(self, shape: Any, dtype: Any = "float32") -> Any:
        """An array for results.  Filled with bytes of ones (NaN, -1), so that what a kernel left out shows."""
        return self._arrays.empty(shape, dtype)

    def zeros(self, shape: Any, dtype: Any = "float32") -> Any:
        """An array of zeros, which draw less power than data and run faster."""
        return self._arrays.zeros(shape, dtype)

    def full(self, shape: Any, value: Any, dtype: Any = "float32") -> Any:
        """An array of one value."""
        return self._arrays.full(shape, value, dtype)

    def empty_like(self, array: Any) -> Any:
        """As ``empty``, contiguous, with the shape and type of ``array``."""
        return self._arrays.empty_like(array)

    def array(self, host: Any) -> Any:
        """A copy on the device of a host array or nested sequence, in the memory order that it has; as ``random``."""
        return self._arrays.array(host)

    def to_host(self, array: Any, dtype: Any = None) -> Any:
        """The array or tensor as NumPy; waits for the work that was enqueued before.

        ``dtype`` is the type whose values are stored in an array of bytes: ``"float8_e4m3fn"``.
        """
        self._before_work()
        if hasattr(array, "detach"):
            self._device.synchronize()
            host = tensor_to_host(array)
        else:
            host = self._device.to_host(array)
        return host if dtype is None else from_bytes(host, dtype)

    def synchronize(self) -> None:
        """Wait until the GPU is idle."""
        self._device.synchronize()

    @property
    def copy_bandwidth(self) -> float:
        """Bytes per second of a large copy, bytes read plus bytes written; measured at first use."""
        return self.peak("copy_bandwidth")

    @property
    def fma_throughput(self) -> float:
        """FLOP per second of independent single-precision FMAs, two FLOP each: the roof ``fp32``."""
        return self.peak("fp32")

    @property
    def roofs(self) -> Mapping[str, float]:
        """The most that each part of the GPU does per second: a roofline's ceilings, by name.

        Bytes of ``dram``, ``l2`` and ``shared``.  Operations of ``fp32``, ``fp64`` and ``int32``, two for a
        multiply-add, and of dense matrix products by cuBLAS: ``fp16``, ``bf16``, and ``fp8``, which is an estimate.
        As recorded for this GPU model, else measured, which takes up to 5 s.
        """
        return {name: self.peak(name) for name in ROOFS if self.peak(name)}

    def peak(self, name: str) -> float:
        """One of the roofs, or ``copy_bandwidth``, by its name; 0 where this GPU has none."""
        if self._no_peaks is not None:
            raise self._no_peaks
        if name not in self.measured_peaks:
            self.measured_peaks[name] = self._device.peak(name)
        return self.measured_peaks[name]

    def assert_equal(self, actual: Any, expected: Any) -> None:
        """Same shape, same type, same bits everywhere; NaN never passes.

        The message gives the number of elements that differ and the worst of them.  Raises ``AssertionError``.
        """
        result_comparison.assert_equal(*self._together(actual, expected))

    def assert_allclose(self, actual: Any, expected: Any, rtol: float = 1e-5, atol: float = 0.0) -> None:
        """``|actual - expected| <= atol + rtol * |expected|`` everywhere, in double precision; NaN never passes.

        ``expected`` may be of another type, so that it may be more precise.  Raises ``AssertionError``.
        """
        result_comparison.assert_allclose(*self._together(actual, expected), rtol=rtol, atol=atol)

    def ulp_error(self, actual: Any, reference: Any, *, dtype: str | None = None) -> float:
        """The largest error in units in the last place: ``assert gpu.ulp_error(y, reference) <= 2``.

        ``reference`` is more precise than ``actual``, which is float16, bfloat16 (as ml_dtypes has it), float32 or
        float64; ``dtype`` names the format whose units count, such as ``"bfloat16"`` for results that were made
        float32.  A unit is the distance of neighbours in that format where the reference lies.  NaN on either side is
        an infinite error, and so is an infinity on one side.
        Raises ``ValueError`` for another format, ``AssertionError`` where shapes differ.
        """
        self._prepare_to_compare()
        return result_comparison.ulp_error(self._on_host(actual), self._on_host(reference), dtype=dtype)

    def _together(self, actual: Any, expected: Any) -> tuple[Any, Any]:
        """Both arrays in one place: on the host if one of them is there."""
        self._prepare_to_compare()
        if isinstance(actual, np.ndarray) or hasattr(actual, "detach") or type(actual) is not type(expected):
            return self._on_host(actual), self._on_host(expected)
        return actual, expected

    def _prepare_to_compare(self) -> None:
        if not self.available:
            raise DeviceNeeded("results are compared")
        self._before_work()

    def _on_host(self, array: Any) -> Any:
        of_gpu = hasattr(array, "detach") or hasattr(array, "__cuda_array_interface__")
        return self.to_host(array) if of_gpu else np.asarray(array)
