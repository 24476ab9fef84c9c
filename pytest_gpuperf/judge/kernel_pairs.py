"""Which kernel of a build is which of the build before: by name, by code, and by place where a name is shared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import NamedTuple

from pytest_gpuperf.model.audited_kernel import AuditedKernel, Kernels


class KernelPlace(NamedTuple):
    """One kernel for one architecture in one file."""

    file: str
    arch: str
    symbol: str
    number: int
    """Among those of the same symbol."""
    kernel: AuditedKernel


class Pairs(NamedTuple):
    """The kernels that two builds of a file have for the architectures of both."""

    kept: list[tuple[KernelPlace, KernelPlace]]
    """Old and new, of one name."""
    renamed: list[tuple[KernelPlace, KernelPlace]]
    """Old and new, of one code and two names."""
    gone: list[KernelPlace]
    new: list[KernelPlace]


_Alike = Callable[[KernelPlace], Hashable]


def paired(file: str, old: Kernels, new: Kernels, key: Callable[[str], str]) -> Pairs:
    """Pairs of kernels.

    Those of one ``key`` are the same kernel; where several share it, such as the lambdas of a function, their code
    tells them apart, and where that changed their symbols, then their order.  Of the rest, equal code is a kernel
    under another name.
    """
    gone, new_ones = _places(file, old), _places(file, new)
    both = {place.arch for place in gone} & {place.arch for place in new_ones}
    gone, new_ones = ([place for place in some if place.arch in both] for some in (gone, new_ones))
    kept: list[tuple[KernelPlace, KernelPlace]] = []
    keys = {symbol: key(symbol) for symbol in {*old, *new}}
    steps: tuple[_Alike, ...] = (
        lambda place: (place.arch, place.symbol, place.kernel.code),
        lambda place: (place.arch, keys[place.symbol], place.kernel.code),
        lambda place: (place.arch, place.symbol),
        lambda place: (place.arch, keys[place.symbol]),
    )
    for alike in steps:
        found, gone, new_ones = _matched(gone, new_ones, alike)
        kept += found
    renamed, gone, new_ones = _matched(gone, new_ones, lambda place: (place.arch, place.kernel.code))
    return Pairs(sorted(kept), sorted(renamed), gone, new_ones)


def _places(file: str, kernels: Kernels) -> list[KernelPlace]:
    """All kernels, in the order of their numbers: of names that differ in one alone the longer has the greater."""
    return [
        KernelPlace(file, arch, symbol, number, kernel)
        for symbol in sorted(kernels, key=lambda one: (len(one), one))
        for arch, several in sorted(kernels[symbol].items())
        for number, kernel in enumerate(several)
    ]


def _matched(
    old: list[KernelPlace], new: list[KernelPlace], alike: _Alike
) -> tuple[list[tuple[KernelPlace, KernelPlace]], list[KernelPlace], list[KernelPlace]]:
    """Pairs of places that are ``alike``, the first with the first; and what is left of both."""
    waiting: dict[Hashable, list[KernelPlace]] = defaultdict(list)
    for place in reversed(old):
        waiting[alike(place)].append(place)
    found, left = [], []
    for place in new:
        of_old = waiting[alike(place)]
        if of_old:
            found.append((of_old.pop(), place))
        else:
            left.append(place)
    still = {id(place) for places in waiting.values() for place in places}
    return found, [place for place in old if id(place) in still], left
