"""Performance regression tests for GPU kernels: a pytest plugin and the ``gpuperf`` command.

What a test may import and annotate is here; docs/reference/api.md has a section on each name.  Names are resolved on
first use, so that importing the package costs nothing.  CONTRIBUTING.md maps the folders.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pytest_gpuperf.model import __version__ as __version__

if TYPE_CHECKING:  # "as" tells a type checker that the name is exported
    from pytest_gpuperf.api.cuda_kernel import KernelCompiler as KernelCompiler
    from pytest_gpuperf.api.gpu_perf import GpuPerf as GpuPerf
    from pytest_gpuperf.api.kernel_files import MissingSource as MissingSource
    from pytest_gpuperf.arguments import BadArgument as BadArgument
    from pytest_gpuperf.compile.compile_errors import BadCubin as BadCubin
    from pytest_gpuperf.compile.compile_errors import BadOption as BadOption
    from pytest_gpuperf.compile.compile_errors import CompileError as CompileError
    from pytest_gpuperf.compile.compile_errors import ToolchainMissing as ToolchainMissing
    from pytest_gpuperf.compile.compile_errors import UnknownArchitecture as UnknownArchitecture
    from pytest_gpuperf.compile.compile_errors import UnknownKernel as UnknownKernel
    from pytest_gpuperf.compile.compile_errors import UnsupportedKernel as UnsupportedKernel
    from pytest_gpuperf.device.device_errors import LaunchError as LaunchError
    from pytest_gpuperf.device.device_errors import LoadError as LoadError
    from pytest_gpuperf.device.gpu import Gpu as Gpu
    from pytest_gpuperf.device.launch import Kernel as Kernel
    from pytest_gpuperf.device.launch import Launch as Launch
    from pytest_gpuperf.device.other_compilers import CuteKernel as CuteKernel
    from pytest_gpuperf.device.other_compilers import CutileKernel as CutileKernel
    from pytest_gpuperf.device.other_compilers import NumbaKernel as NumbaKernel
    from pytest_gpuperf.device.other_compilers import TritonKernel as TritonKernel
    from pytest_gpuperf.model.device_facts import DeviceFacts as DeviceFacts
    from pytest_gpuperf.model.evidence import Key as Key
    from pytest_gpuperf.model.evidence import Occupancy as Occupancy
    from pytest_gpuperf.model.evidence import StaticProfile as StaticProfile
    from pytest_gpuperf.model.evidence import StaticRecord as StaticRecord
    from pytest_gpuperf.model.verdict import Change as Change
    from pytest_gpuperf.model.verdict import Judgement as Judgement
    from pytest_gpuperf.model.verdict import TimeFigures as TimeFigures
    from pytest_gpuperf.model.verdict import Verdict as Verdict
    from pytest_gpuperf.test_record import CheckedOnly as CheckedOnly
    from pytest_gpuperf.test_record import CountersMissing as CountersMissing
    from pytest_gpuperf.test_record import DuplicateWorkload as DuplicateWorkload
    from pytest_gpuperf.test_record import PerformanceRegression as PerformanceRegression
    from pytest_gpuperf.test_record import StaticOnly as StaticOnly
    from pytest_gpuperf.workload.measurement import Measurement as Measurement
    from pytest_gpuperf.workload.measurement import NotDeclared as NotDeclared

_HOMES = {
    home: names.split()
    for home, names in {
        "api.cuda_kernel": "KernelCompiler",
        "api.gpu_perf": "GpuPerf",
        "api.kernel_files": "MissingSource",
        "compile.compile_errors": "BadCubin BadOption CompileError ToolchainMissing UnknownArchitecture UnknownKernel "
        "UnsupportedKernel",
        "arguments": "BadArgument",
        "device.device_errors": "LaunchError LoadError",
        "device.gpu": "Gpu",
        "device.launch": "Kernel Launch",
        "device.other_compilers": "CuteKernel CutileKernel NumbaKernel TritonKernel",
        "test_record": "CheckedOnly CountersMissing DuplicateWorkload PerformanceRegression StaticOnly",
        "model.device_facts": "DeviceFacts",
        "model.evidence": "Key Occupancy StaticProfile StaticRecord",
        "model.verdict": "Change Judgement TimeFigures Verdict",
        "workload.measurement": "Measurement NotDeclared",
    }.items()
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker that saw this would take any name for one of this package
    __all__ = [*sorted(_HOME_OF), "__version__"]

    def __getattr__(name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])
