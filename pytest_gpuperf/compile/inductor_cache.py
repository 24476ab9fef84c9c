"""Kernels that Inductor, the compiler of ``torch.compile``, left in a cache folder of one call: which it chose.

Triton keeps a folder for each compilation, where ``NAME.json`` tells the warps and the shared memory of ``NAME.cubin``.
Where Inductor had a choice, a ``.best_config`` file has what it chose and names that folder, so that the two can be
matched (pytorch/pytorch#148981).  Nobody promises either layout: they are read as PyTorch 2.9 to 2.15 leave them, and
others are refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pytest_gpuperf.compile.compile_errors import UnsupportedTritonKernel
from pytest_gpuperf.compile.tuned_configuration import configuration_text

_DEFINED = re.compile(r"async_compile\.triton\(\s*['\"](\w+)['\"]")
"""Where the program that Inductor writes for a graph defines a kernel."""
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
_TIMED = "Its time is gated all the same: gpuperf(lambda: function(...))"


class GeneratedKernel(NamedTuple):
    """A kernel of one compiled function."""

    name: str
    cubin: bytes
    ptx: str
    threads: int
    """Per block."""
    shared_bytes: int
    """Dynamic shared memory per block."""
    compiler: str
    """``triton 3.6.0``"""
    config: str
    """What Inductor chose, where it had a choice, as ``configuration_text`` tells it."""


class _Target(msgspec.Struct):
    backend: str
    warp_size: int


class _Metadata(msgspec.Struct):
    """What ``NAME.json`` has of the launch."""

    name: str
    target: _Target
    num_warps: int
    shared: int
    triton_version: str = ""


def read_inductor(folder: Path) -> tuple[GeneratedKernel, ...]:
    """The kernels that were chosen, by name, at least one.  Raises ``UnsupportedTritonKernel``."""
    found: dict[str, list[Path]] = {}
    defined = _definitions(folder)
    for cubin in sorted(folder.rglob("*.cubin")):
        if cubin.stem in defined:  # others were compiled to be tried out alone
            found.setdefault(cubin.stem, []).append(cubin)
    if not found:
        raise UnsupportedTritonKernel(
            "from_torch: the call compiled no Triton kernel: its tensors are not on the GPU, it calls nothing but "
            f"libraries, or PyTorch's caches are turned off. {_TIMED}"
        )
    chosen = dict(_chosen(folder))
    return tuple(_kernel(_one(name, cubins, chosen, defined), chosen) for name, cubins in found.items())


def _one(name: str, cubins: list[Path], chosen: Mapping[str, str], defined: Mapping[str, int]) -> Path:
    """The cubin of that name that is launched."""
    if defined[name] > 1:
        raise UnsupportedTritonKernel(
            f"from_torch: {defined[name]} kernels are called {name}, one per graph that the function was compiled to: "
            f"compile it to one, by torch.compile(..., fullgraph=True) and without a backward pass. {_TIMED}"
        )
    best = [cubin for cubin in cubins if cubin.parent.name in chosen] if len(cubins) > 1 else cubins
    if len(best) != 1:
        raise UnsupportedTritonKernel(
            f"from_torch: {name} was compiled {len(cubins)} times, and PyTorch does not say which of them it launches: "
            "PyTorch 2.9 to 2.15 do, unless their autotuning caches or coordinate descent are set otherwise. "
            f"{_TIMED}"
        )
    return best[0]


def _kernel(cubin: Path, chosen: Mapping[str, str]) -> GeneratedKernel:
    try:
        facts = msgspec.json.decode(cubin.with_suffix(".json").read_bytes(), type=_Metadata)
    except (OSError, msgspec.MsgspecError) as problem:
        raise UnsupportedTritonKernel(
            f"from_torch: {cubin.stem}: its files are not those of Triton 3.0 to 3.9: {problem}. {_TIMED}"
        ) from problem
    ptx = cubin.with_suffix(".ptx")
    return GeneratedKernel(
        name=facts.name, cubin=cubin.read_bytes(), ptx=ptx.read_text(encoding="utf-8") if ptx.is_file() else "",
        threads=facts.num_warps * facts.target.warp_size, shared_bytes=facts.shared,
        compiler=f"triton {facts.triton_version}".strip(), config=chosen.get(cubin.parent.name, ""),
    )  # fmt: skip


def _chosen(folder: Path) -> Iterator[tuple[str, str]]:
    """Name of Triton's folder and the configuration, of every choice that Inductor made."""
    for file in folder.rglob("*.best_config"):
        try:
            best = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        except msgspec.MsgspecError:  # then what it chose is not known, and not needed where there was no choice
            continue
        place = best.get("triton_cache_hash")
        if isinstance(place, str):
            constants = [name for name in best if name.isupper()]
            told = {name: best[name] for name in (*constants, *_OPTIONS) if best.get(name) is not None}
            yield place, configuration_text(told, constants)


def _definitions(folder: Path) -> Counter[str]:
    """How many kernels of each name there are: each graph has a program of its own, and counts from 0."""
    programs = (file.read_text(encoding="utf-8") for file in folder.rglob("*.py"))
    return Counter(name for program in programs for name in _DEFINED.findall(program))
