"""Parts of the compiler that the probes use, in one module that is loaded by name: its import may fail."""

from pytest_gpuperf.compile.compile_errors import CompileProblem
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.toolkit import container_reader, disassembler
from pytest_gpuperf.compile.version import toolchain

__all__ = ["CompileProblem", "KernelSource", "compile_kernel", "container_reader", "disassembler", "toolchain"]
