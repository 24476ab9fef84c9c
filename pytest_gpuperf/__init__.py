"""Performance regression tests for GPU kernels: a pytest plugin and the ``gpuperf`` command.

What a test may import and annotate is here; docs/reference/api.md has a section on each name.  Names are resolved on
first use, so that importing the package costs nothing.

The rooms, from the front door down; the contract in pyproject.toml says who may import whom:

``plugin``, ``cli``     pytest's hooks, and the ``gpuperf`` command
``session``             a run from collection to exit
``api``, ``update``     what a test calls, and ``--update-baselines``
``workload``            one workload, from request to verdict
``explain``, ``report`` causes of a change, and how a run reads
``context``             what one process shares; ``hookspecs`` are hooks for conftests
``selftest``, ``doctor`` what this machine can gate, and what it lacks
``timing``, ``counters`` rounds and paired blocks, and Nsight Compute
``baselines``, ``advise`` the committed files, and differences to causes
``device``, ``compile`` the GPU with its timers, and source to machine code to static evidence
``config``              flags, ini keys and call arguments
``judge``, ``model``    pure decisions, and the records that they decide on
``formatting``, ``atomic_write``  numbers as text, and files that are never seen half written
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pytest_gpuperf.model.plugin_version import __version__

if TYPE_CHECKING:
    from pytest_gpuperf.api.cuda_kernel import KernelCompiler, MissingSource
    from pytest_gpuperf.api.gpu_perf import GpuPerf
    from pytest_gpuperf.compile.compile_errors import (
        BadCubin,
        BadOption,
        CompileError,
        ToolchainMissing,
        UnknownArchitecture,
        UnknownKernel,
        UnsupportedTritonKernel,
    )
    from pytest_gpuperf.config.call_arguments import BadArgument
    from pytest_gpuperf.context.book import DuplicateWorkload
    from pytest_gpuperf.context.early_stop import CheckedOnly, CountersMissing, StaticOnly
    from pytest_gpuperf.device.device_errors import LaunchError, LoadError
    from pytest_gpuperf.device.gpu import Gpu
    from pytest_gpuperf.device.launch import Kernel, Launch
    from pytest_gpuperf.device.triton_kernel import TritonKernel
    from pytest_gpuperf.model.device_facts import DeviceFacts
    from pytest_gpuperf.model.evidence import Key, Occupancy, StaticProfile, StaticRecord
    from pytest_gpuperf.model.verdict import Change, Judgement, TimeFigures, Verdict
    from pytest_gpuperf.workload.measurement import Measurement, NotDeclared

_HOMES = {
    "api.cuda_kernel": (
        "KernelCompiler",
        "MissingSource",
    ),
    "api.gpu_perf": ("GpuPerf",),
    "compile.compile_errors": (
        "BadCubin",
        "BadOption",
        "CompileError",
        "ToolchainMissing",
        "UnknownArchitecture",
        "UnknownKernel",
        "UnsupportedTritonKernel",
    ),
    "config.call_arguments": ("BadArgument",),
    "context.book": ("DuplicateWorkload",),
    "context.early_stop": (
        "CheckedOnly",
        "CountersMissing",
        "StaticOnly",
    ),
    "device.device_errors": (
        "LaunchError",
        "LoadError",
    ),
    "device.gpu": ("Gpu",),
    "device.launch": (
        "Kernel",
        "Launch",
    ),
    "device.triton_kernel": ("TritonKernel",),
    "model.device_facts": ("DeviceFacts",),
    "model.evidence": (
        "Key",
        "Occupancy",
        "StaticProfile",
        "StaticRecord",
    ),
    "model.verdict": (
        "Change",
        "Judgement",
        "TimeFigures",
        "Verdict",
    ),
    "workload.measurement": (
        "Measurement",
        "NotDeclared",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BadArgument",
    "BadCubin",
    "BadOption",
    "Change",
    "CheckedOnly",
    "CompileError",
    "CountersMissing",
    "DeviceFacts",
    "DuplicateWorkload",
    "Gpu",
    "GpuPerf",
    "Judgement",
    "Kernel",
    "KernelCompiler",
    "Key",
    "Launch",
    "LaunchError",
    "LoadError",
    "Measurement",
    "MissingSource",
    "NotDeclared",
    "Occupancy",
    "StaticOnly",
    "StaticProfile",
    "StaticRecord",
    "TimeFigures",
    "ToolchainMissing",
    "TritonKernel",
    "UnknownArchitecture",
    "UnknownKernel",
    "UnsupportedTritonKernel",
    "Verdict",
    "__version__",
]


if not TYPE_CHECKING:  # a type checker that saw it would take any name for one of this package

    def __getattr__(name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
