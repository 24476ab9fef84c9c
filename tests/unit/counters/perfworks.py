"""Asks NVIDIA's own metric library which metrics a chip has and how many passes they take; needs no GPU.

The library, ``libnvperf_host.so``, lies in the wheel ``ncu-report``; its interface is declared in CUPTI's
``nvperf_host.h`` and ``nvperf_cuda_host.h``, whose structures are repeated here as far as they are used.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint8, c_uint16, c_void_p
from pathlib import Path
from typing import Any

PROFILER = 1
"""``NVPA_ACTIVITY_KIND_PROFILER``"""


class Request(ctypes.Structure):
    _fields_ = (("index", c_size_t), ("type", c_uint8), ("rollup", c_uint8), ("submetric", c_uint16))


REQUEST_SIZE = 12


class RawRequest(ctypes.Structure):
    _fields_ = (
        ("size", c_size_t), ("private", c_void_p), ("name", c_char_p), ("isolated", c_uint8), ("instances", c_uint8),
    )  # fmt: skip


RAW_REQUEST_SIZE = 26


class Refused(Exception):
    """The library returned an error."""


class PerfWorks:
    """One chip's metrics."""

    def __init__(self, chip: str) -> None:
        spec = importlib.util.find_spec("ncu_report")
        assert spec is not None, "pip install ncu-report"  # not imported: at the end of Python the module crashes
        self._library = ctypes.CDLL(str(Path(str(spec.origin)).parent / "libnvperf_host.so"))
        self._chip = chip.encode()
        self._call("NVPW_InitializeHost")
        (size,) = self._call(
            "NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize", (c_char_p, self._chip), (c_void_p, None),
            out=(c_size_t,),
        )  # fmt: skip
        self._scratch = (c_uint8 * size)()
        (self._evaluator,) = self._call(
            "NVPW_CUDA_MetricsEvaluator_Initialize", (c_void_p, ctypes.addressof(self._scratch)), (c_size_t, size),
            (c_char_p, self._chip), (c_void_p, None), (c_void_p, None), (c_size_t, 0), out=(c_void_p,),
        )  # fmt: skip

    def has(self, name: str) -> bool:
        """Whether the chip has the metric, suffix included."""
        try:
            self._request(name)
        except Refused:
            return False
        return True

    def passes(self, names: Sequence[str]) -> int:
        """How often a kernel has to run for all of these."""
        raw = sorted({dependency for name in names for dependency in self._raw(name)})
        requests = (RawRequest * len(raw))(*(RawRequest(RAW_REQUEST_SIZE, None, one, 1, 1) for one in raw))
        (config,) = self._call(
            "NVPW_CUDA_RawMetricsConfig_Create_V2", (c_int, PROFILER), (c_char_p, self._chip), (c_void_p, None),
            out=(c_void_p,),
        )  # fmt: skip
        self._call("NVPW_RawMetricsConfig_BeginPassGroup", (c_void_p, config), (c_size_t, 0))
        self._call("NVPW_RawMetricsConfig_AddMetrics", (c_void_p, config), (c_void_p, ctypes.addressof(requests)),
                   (c_size_t, len(raw)))  # fmt: skip
        self._call("NVPW_RawMetricsConfig_EndPassGroup", (c_void_p, config))
        (count,) = self._call("NVPW_RawMetricsConfig_GetNumPasses_V2", (c_void_p, config), out=(c_size_t,))
        self._call("NVPW_RawMetricsConfig_Destroy", (c_void_p, config))
        return int(count)

    def _request(self, name: str) -> Request:
        request = Request()
        self._call(
            "NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest", (c_void_p, self._evaluator),
            (c_char_p, name.encode()), (c_void_p, ctypes.addressof(request)), (c_size_t, REQUEST_SIZE),
        )  # fmt: skip
        return request

    def _raw(self, name: str) -> list[bytes]:
        request = self._request(name)
        fixed = ((c_void_p, self._evaluator), (c_void_p, ctypes.addressof(request)), (c_size_t, 1),
                 (c_size_t, REQUEST_SIZE), (c_size_t, ctypes.sizeof(Request)))  # fmt: skip
        function = "NVPW_MetricsEvaluator_GetMetricRawDependencies"
        _, count, _, more = self._call(function, *fixed, out=(c_void_p, c_size_t, c_void_p, c_size_t))
        names, optional = (c_char_p * max(count, 1))(), (c_char_p * max(more, 1))()
        pointers = ((c_void_p, ctypes.addressof(names)), (c_size_t, count), (c_void_p, ctypes.addressof(optional)),
                    (c_size_t, more))  # fmt: skip
        self._call(function, *fixed, *pointers)
        return [one for one in names[:count] if one]

    def _call(self, function: str, *given: tuple[Any, Any], out: Sequence[Any] = ()) -> list[Any]:
        """Every function takes one structure: its size, a null pointer, what is given, what comes back."""
        types = [c_size_t, c_void_p, *(kind for kind, _ in given), *out]
        fields = [(f"field{number}", kind) for number, kind in enumerate(types)]
        structure = type("Parameters", (ctypes.Structure,), {"_fields_": fields})
        last = getattr(structure, fields[-1][0])
        values = structure(last.offset + last.size, None, *(value for _, value in given))
        status = getattr(self._library, function)(POINTER(structure)(values))
        if status:
            raise Refused(f"{function}: status {status}")
        return [getattr(values, name) for name, _ in fields[2 + len(given) :]]
