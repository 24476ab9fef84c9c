"""Sources that kernels of CuPy carry, as CuPy would compile them.

Read from a ``cupy.RawKernel`` or ``cupy.RawModule`` by what it has, as CuPy 13 and 14 make it.  What a RawKernel was
made with is its state, the one that ``pickle`` keeps.  CuPy adds the folders of its own headers.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_gpuperf.compile.adapters.handed import unsupported
from pytest_gpuperf.compile.compile_errors import UnsupportedKernel
from pytest_gpuperf.compile.machine_code.symbols import named_alike
from pytest_gpuperf.compile.source import NVCC, KernelSource

_CCCL = ("cub", "thrust", "libcudacxx")
_FOR_NVCC = ("--std=c++17", "-ftz=true")
"""Options that CuPy gives nvcc as well as NVRTC; NVRTC gets them here by default."""
_MODULE_FIELDS = ("code", "options", "backend", "file_path", "enable_cooperative_groups", "name_expressions")


class CupyCode(NamedTuple):
    """One kernel as CuPy was given it."""

    name: str
    source: KernelSource | None = None
    path: str = ""
    """Of a cubin, in the place of a source."""
    options: tuple[str, ...] = ()
    """Those that CuPy was given."""
    cooperative: bool = False
    """Whether CuPy launches it cooperatively."""


def read_cupy(kernel: Any, name: str | None = None) -> CupyCode:
    """Read a ``RawKernel``, or the kernel ``name`` of a ``RawModule``.  Raises ``UnsupportedKernel``."""
    state = _state(kernel, name)
    called, cooperative = state["name"], bool(state["enable_cooperative_groups"])
    if state["code"] is None:
        return CupyCode(called, path=str(state["file_path"]), cooperative=cooperative)
    expressions = tuple(state["name_expressions"] or ())
    expression = next((one for one in expressions if named_alike(one, [called])), None)
    if expression is None and expressions and called.startswith("_Z"):  # a function of a module has its symbol alone
        raise UnsupportedKernel(
            f"{called}: its template instance is not known: pass the module and the name expression, "
            f"from_cupy(module, {expressions[0]!r})"
        )
    if state.get("translate_cucomplex"):
        raise unsupported(f"{called}: CuPy translates its cuComplex.h (translate_cucomplex=True)", "CuPy")
    first, last = _folders(kernel)
    defaults = _FOR_NVCC if state["backend"] == NVCC else ()
    source = KernelSource(
        text=state["code"], name=expression or called, options=(*first, *defaults, *state["options"], *last),
        name_expression=expression, compiler=state["backend"],
    )  # fmt: skip
    return CupyCode(source.name, source, options=tuple(state["options"]), cooperative=cooperative)


def _state(kernel: Any, name: str | None) -> Mapping[str, Any]:
    """What CuPy was given for a kernel."""
    if hasattr(kernel, "get_function") and hasattr(kernel, "code"):
        if name is None:
            raise UnsupportedKernel('from_cupy takes a RawModule with the name of a kernel: from_cupy(module, "scale")')
        return {key: getattr(kernel, key) for key in _MODULE_FIELDS} | {"name": name}
    if not hasattr(kernel, "code") or not hasattr(kernel, "backend"):
        raise unsupported(
            f"from_cupy takes a RawKernel, or a RawModule with the name of a kernel, not {type(kernel).__name__}",
            "CuPy",
        )
    if name is not None:
        raise UnsupportedKernel(f"{kernel.name}: a RawKernel has its name; name={name!r} is for a RawModule")
    state: Mapping[str, Any] = kernel.__getstate__()
    return state


def _folders(kernel: Any) -> tuple[list[str], list[str]]:
    """Options with the folders that the CuPy that made the kernel searches first, its CCCL, and last, its headers."""
    file = getattr(sys.modules.get(type(kernel).__module__.partition(".")[0]), "__file__", None)
    folder = Path(file).parent / "_core" / "include" if file is not None else None
    if folder is None or not folder.is_dir():
        return [], []
    return [f"-I{folder / 'cupy/_cccl' / part}" for part in _CCCL], [f"-I{folder}"]
