"""Sources that kernels of CuPy carry, as CuPy would compile them.

Read from a ``cupy.RawKernel`` or ``cupy.RawModule`` by what it has, as CuPy 13 and 14 make it; CuPy is never imported.
What a RawKernel was made with is its state, the one that ``pickle`` keeps.  CuPy adds the folders of its own headers,
and the headers themselves where it translates ``cuComplex.h`` to its complex numbers (``cupy/_core/core.pyx``).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import UnsupportedCupyKernel
from pytest_gpuperf.compile.compiler import compile_together
from pytest_gpuperf.compile.nvrtc import NVCC
from pytest_gpuperf.compile.source import KernelSource

_HEADERS = ("cupy/complex.cuh", "cupy/carray.cuh", "cupy/atomics.cuh", "cupy/math_constants.h")
"""Headers that CuPy puts before the kernels that it writes itself."""
_REMEDY = "Give gpuperf a function that launches it with CuPy; its time is then compared without pairs"
_COMPLEX = "cupy/cuComplex_bridge.h"
_INCLUDES_CUCOMPLEX = re.compile(r"^\s*#\s*include\s*<\s*cuComplex\.h\s*>", re.M)
_CCCL = ("cub", "thrust", "libcudacxx")
_FOR_NVCC = ("--std=c++17", "-ftz=true")
"""Options that CuPy gives nvcc as well as NVRTC; NVRTC gets them here by default."""


class CupyCode(NamedTuple):
    """One kernel as CuPy was given it."""

    sources: tuple[KernelSource, ...] = ()
    """One that has to compile; or several, one of which makes the symbol ``name``."""
    name: str = ""
    path: str = ""
    """Of a cubin, in the place of a source."""
    options: tuple[str, ...] = ()
    """Those that CuPy was given."""
    cooperative: bool = False
    """Whether CuPy launches it cooperatively."""


def read_cupy(kernel: Any, name: str | None = None) -> CupyCode:
    """Read a ``RawKernel``, or the kernel ``name`` of a ``RawModule``.  Raises ``UnsupportedCupyKernel``."""
    state = _state(kernel, name)
    called = state["name"]
    if state.get("jitify"):
        raise UnsupportedCupyKernel(f"{called}: it is compiled with Jitify, which CuPy 15 drops: leave jitify= out")
    cooperative = bool(state["enable_cooperative_groups"])
    if state["code"] is None:
        path = str(state["file_path"])
        if Path(path).suffix == ".ptx":
            raise UnsupportedCupyKernel(
                f"{called}: CuPy has the PTX {path} of it, which the driver assembles: assemble it for each "
                "architecture (ptxas -arch=sm_90), and take the cubins with from_cubin"
            )
        return CupyCode(name=called, path=path, cooperative=cooperative)
    text = translated(state["code"]) if state["translate_cucomplex"] else state["code"]
    options = _options(kernel, state["options"], state["backend"])
    expressions = tuple(state["name_expressions"] or ())
    if called in expressions:
        expressions = (called,)
    sources = [
        KernelSource(text=text, name=called, options=options, name_expression=expression, compiler=state["backend"])
        for expression in (*expressions, *([] if called in expressions else [None]))
    ]
    return CupyCode(tuple(sources), called, options=tuple(state["options"]), cooperative=cooperative)


def _state(kernel: Any, name: str | None) -> Mapping[str, Any]:
    """What CuPy was given for the kernel."""
    if hasattr(kernel, "get_function") and hasattr(kernel, "code"):
        return _state_in_module(kernel, name)
    if not hasattr(kernel, "code") or not hasattr(kernel, "backend"):
        raise UnsupportedCupyKernel(
            "from_cupy takes a RawKernel, or a RawModule with the name of a kernel, not "
            f"{type(kernel).__name__}. {_REMEDY}"
        )
    if name is not None:
        raise UnsupportedCupyKernel(f"{kernel.name}: a RawKernel has its name; name={name!r} is for a RawModule")
    state: Mapping[str, Any] = kernel.__getstate__()
    return state


def _state_in_module(module: Any, name: str | None) -> Mapping[str, Any]:
    if name is None:
        raise UnsupportedCupyKernel('from_cupy takes a RawModule with the name of a kernel: from_cupy(module, "scale")')
    if module.code is not None and _INCLUDES_CUCOMPLEX.search(module.code):
        raise UnsupportedCupyKernel(
            f"{name}: its module includes cuComplex.h, and a RawModule does not tell whether it translates that: "
            f'make it RawKernel(code, "{name}", translate_cucomplex=...), or hand over module.get_function("{name}"), '
            "which needs a GPU"
        )
    told = {key: getattr(module, key) for key in _TOLD_BY_MODULE}
    return {**told, "name": name, "translate_cucomplex": False}


_TOLD_BY_MODULE = ("code", "options", "backend", "file_path", "enable_cooperative_groups", "name_expressions")


def translated(code: str) -> str:
    """The source with CuPy's complex numbers in the place of CUDA's, and CuPy's headers before it."""
    text = _INCLUDES_CUCOMPLEX.sub(f"#include <{_COMPLEX}>", code)
    return "".join(f"#include <{header}>\n" for header in (*_HEADERS, _COMPLEX)) + text


def _options(kernel: Any, options: Sequence[str], backend: str = "nvrtc") -> tuple[str, ...]:
    """The options of a kernel with the folders that CuPy searches: its copy of CCCL first, its own headers last."""
    folder = _headers_of(kernel)
    first = [f"-I{folder / 'cupy/_cccl' / part}" for part in _CCCL] if folder is not None else []
    last = [f"-I{folder}"] if folder is not None else []
    defaults = _FOR_NVCC if backend == NVCC else ()
    return (*first, *defaults, *options, *last)


def _headers_of(kernel: Any) -> Path | None:
    """Folder of the headers that come with the CuPy that made the kernel."""
    file = getattr(sys.modules.get(type(kernel).__module__.partition(".")[0]), "__file__", None)
    folder = Path(file).parent / "_core" / "include" if file is not None else None
    return folder if folder is not None and folder.is_dir() else None


def source_of(code: CupyCode, arch: str, cache: CompileCache | None) -> KernelSource:
    """The one of its sources that makes the kernel: a module's function knows its symbol, not its name expression.

    Raises as ``compile_kernel``.
    """
    *templates, last = code.sources
    made = compile_together(templates, [arch], cache) if templates else {}
    return next((source for source in templates if made[source, arch].symbol == code.name), last)
