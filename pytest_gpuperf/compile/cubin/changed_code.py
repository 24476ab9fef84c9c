"""The instructions of chosen kernels of files that are already built: a hundred times the work of all else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pytest_gpuperf.compile.compile_errors import BadCubin, ToolchainMissing
from pytest_gpuperf.compile.cubin.audited import CodeAt
from pytest_gpuperf.compile.cubin.cubin_reader import Cubin, read_cubin, text_of
from pytest_gpuperf.compile.cubin.disassembly import disassemble
from pytest_gpuperf.compile.cubin.static_profile import profile_of
from pytest_gpuperf.model.architectures import ARCHITECTURES, plain
from pytest_gpuperf.model.evidence import StaticProfile

MOST_BYTES = 4 << 20
"""Of machine code that is disassembled: 5 s on a core."""
_AT_ONCE = 2

Name = TypeVar("Name")


def within_bounds(wanted: Iterable[tuple[Name, int]]) -> list[Name]:
    """The first of ``wanted``, which have these sizes in bytes, as far as ``MOST_BYTES`` goes."""
    left, found = MOST_BYTES, []
    for name, size in wanted:
        if size <= left:
            left -= size
            found.append(name)
    return found


def profiles_of(places: Mapping[Name, CodeAt]) -> dict[Name, StaticProfile]:
    """Full profiles; those that nvdisasm does not know, as of old architectures, are left out."""
    groups: dict[str, list[Name]] = defaultdict(list)
    for name, place in places.items():
        if plain(place.cubin.arch) in ARCHITECTURES:
            groups[place.cubin.arch].append(name)
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        parts = pool.map(lambda arch: _of_arch(arch, {name: places[name] for name in groups[arch]}), groups)
        return {name: profile for part in parts for name, profile in part.items()}


def _of_arch(arch: str, places: Mapping[Name, CodeAt]) -> dict[Name, StaticProfile]:
    cubins: dict[object, Cubin] = {}
    for place in places.values():
        if place.cubin.path not in cubins:
            cubins[place.cubin.path] = read_cubin(place.cubin.path.read_bytes())
    chosen = [(cubins[place.cubin.path], place.symbol) for place in places.values()]
    try:
        code = disassemble(
            arch, {number: text_of(cubin.elf, symbol).data for number, (cubin, symbol) in enumerate(chosen)}
        )
        profiles = [profile_of(cubin, cubin.kernels[one], code[number]) for number, (cubin, one) in enumerate(chosen)]
    except (ToolchainMissing, BadCubin):  # the figures of the ELF sections stand
        return {}
    return dict(zip(places, profiles, strict=True))
