"""Kernels that other compilers made, as the scripts in ``*_compiled`` kept them: stand in for those compilers' objects.

CuPy's are as 13.6 to 14.2 make them.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

HERE = Path(__file__).parent
WIDE, NARROW = "add-3.6.0", "add-narrow-3.6.0"
OF_TRITON, OF_DSL = HERE / "triton_compiled", HERE / "dsl_compiled"


def _facts(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def written(name: str, arguments: Sequence[str]) -> Any:
    """A function of Python, in no file."""
    made: dict[str, Any] = {}
    exec(f"def {name}({', '.join(arguments)}): i = 0", made)
    return made[name]


# --- CuPy ------------------------------------------------------------------------------------------

SCALE = 'extern "C" __global__ void scale(float* x, float by, int n) { int i = threadIdx.x; if (i < n) x[i] *= by; }'
COPY = "template <class T> __global__ void copy(T* x, T* y) { y[threadIdx.x] = x[threadIdx.x]; }"
MODULE = {"backend": "nvrtc", "enable_cooperative_groups": False, "file_path": None, "options": ()}
STATE = {**MODULE, "jitify": False, "name_expressions": None, "raw_ver": 2, "translate_cucomplex": False}
MODULES = {
    "copies": {**MODULE, "code": COPY, "name_expressions": ("copy<float>", "copy<int>")},
    "cubin": {**MODULE, "code": None, "file_path": "kernels/scale.cubin", "name_expressions": None},
}


class RawKernel:
    """``cupy.RawKernel``, as far as it is kept: what is readable, and its state."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        self.code, self.name, self.backend = state["code"], state["name"], state["backend"]

    def __getstate__(self) -> dict[str, Any]:
        return {**self._state, "options": tuple(self._state["options"])}


def raw(name: str, /, **state: Any) -> RawKernel:
    return RawKernel({**STATE, "name": name, "code": SCALE, "options": ("--use_fast_math",), **state})


def module(name: str) -> SimpleNamespace:
    return SimpleNamespace(**MODULES[name], get_function=None)


# --- the CuTe DSL and cuTile -----------------------------------------------------------------------

PACKAGE = "recorded_cutile"


def cubin(stem: str) -> bytes:
    """The machine code ``cute-add-4.8.1-sm_90a``."""
    return lzma.decompress((OF_DSL / f"{stem}.cubin.xz").read_bytes())


def cute_compiled(stem: str, **changes: Any) -> SimpleNamespace:
    """A ``JitCompiledFunction``, as far as it is read; ``changes`` replace what was kept."""
    return SimpleNamespace(**{"__cubin__": cubin(stem), "__ptx__": f"//\n// PTX of {stem}", **changes})


class RecordedSignature:
    """A ``KernelSignature``."""

    __module__ = f"{PACKAGE}._signature"

    def __init__(self, stem: str) -> None:
        self.stem = stem
        self.parameters = tuple(map(_constraint, _facts(OF_DSL / f"{stem}.json")))


def _constraint(facts: dict[str, Any]) -> Any:
    made = type(facts["class"], (), {})()
    vars(made).update({name: value for name, value in facts.items() if name != "class"})
    return made


def install_recorded_cutile() -> None:
    """Make ``export_kernel`` hand out what was recorded, where the adapter looks for cuTile's own."""

    def export_kernel(kernel: Any, signatures: Any, file: Any, *, gpu_code: str, output_format: str) -> None:
        (signature,) = signatures
        assert output_format == "cubin"
        stem = f"{getattr(kernel, 'stem', signature.stem)}-{gpu_code}"
        if not (OF_DSL / f"{stem}.cubin.xz").exists():
            raise ValueError(f"unsupported GPU {gpu_code}")
        file.write(cubin(stem))

    sys.modules[PACKAGE] = ModuleType(PACKAGE)
    sys.modules[PACKAGE].export_kernel = export_kernel  # type: ignore[attr-defined]


# --- Numba -----------------------------------------------------------------------------------------

LATEST = "numba-cuda-0.30.4"


class NumbaType(SimpleNamespace):
    """A type of Numba: its name, and what an array's tells."""

    def __str__(self) -> str:
        return str(self.name)


class CudaSupportError(Exception):
    """Numba's, where there is no driver."""


class NumbaCuda(ModuleType):
    """The module ``numba.cuda`` of one version, which compiles what was kept."""

    def __init__(self, version: str) -> None:
        super().__init__("numba.cuda")
        self.facts = _facts(HERE / "numba_compiled" / f"{version}.json")
        self.__file__ = f"/site-packages/{self.facts['package'].replace('-', '_')}/cuda/__init__.py"
        self.calls: list[dict[str, Any]] = []
        self.problem: Exception | None = None

    def compile(self, pyfunc: Any, sig: Any, **options: Any) -> tuple[str, None]:
        assert set(options) <= set(self.facts["compile"])
        self.calls.append({"sig": sig, **options})
        if self.problem is not None:
            raise self.problem
        major, minor = options["cc"]
        return self.facts["kernels"][pyfunc.__name__]["ptx"][f"sm_{major}{minor}"], None

    def dispatcher(self, name: str, function: Any = None, **options: Any) -> SimpleNamespace:
        """What ``@cuda.jit`` made; its own PTX is linked, for LTO IR is no text to keep."""
        kept = self.facts["kernels"][name]
        options = {**kept["options"], "lto": False, **options}
        return SimpleNamespace(py_func=function or written(name, kept["names"]), targetoptions=options)

    def signature(self, name: str) -> tuple[NumbaType, ...]:
        types = self.facts["kernels"][name]["types"]
        return tuple(
            NumbaType(**{key: NumbaType(name=value) if key == "dtype" else value for key, value in one.items()})
            for one in types
        )


# --- Triton ----------------------------------------------------------------------------------------


def compiled(stem: str, **metadata: Any) -> SimpleNamespace:
    """The ``CompiledKernel`` ``add-3.6.0``; ``metadata`` replaces some of Triton's."""
    facts = _facts(OF_TRITON / f"{stem}.json")
    target, src = SimpleNamespace(**facts["metadata"].pop("target")), facts["src"]
    constants, attrs = ({_key(key): value for key, value in src[name]} for name in ("constants", "attrs"))
    return SimpleNamespace(
        asm={"cubin": (OF_TRITON / f"{stem}.cubin").read_bytes(), "ptx": f"// PTX of {stem}"},
        metadata=SimpleNamespace(**{**facts["metadata"], "target": target, **metadata}),
        src=SimpleNamespace(
            fn=SimpleNamespace(arg_names=src["arg_names"], fn=written(stem.partition("-")[0], src["arg_names"])),
            signature=src["signature"], constants=constants, attrs=attrs,
        ),
    )  # fmt: skip


def _key(kept: Any) -> Any:
    """JSON has no tuples."""
    return tuple(kept) if isinstance(kept, list) else kept


class Config:
    """``triton.Config``, as far as it is kept."""

    def __init__(self, stem: str, **changes: Any) -> None:
        self._kept = {**_facts(OF_TRITON / f"{stem}.json")["config"], **changes}

    def all_kwargs(self) -> dict[str, Any]:
        return self._kept
