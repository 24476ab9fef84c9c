"""Machine code that a test hands over, in every form: a cubin, one for each architecture, a container of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_gpuperf.api.kernel_files import cubin_content
from pytest_gpuperf.arguments import BadArgument, require
from pytest_gpuperf.compile.compile_errors import BadContainer
from pytest_gpuperf.compile.cubin.fatbin import begins_as_container, cubins_by_arch, is_cubin
from pytest_gpuperf.compile.cubin.ready_made import ready_made, ready_made_among
from pytest_gpuperf.context.shared_fixtures import Site
from pytest_gpuperf.device.device_errors import LoadError
from pytest_gpuperf.model.architectures import SPELLINGS, plain
from pytest_gpuperf.model.evidence import KernelBinary


class GivenCode(NamedTuple):
    """Machine code that others have compiled."""

    place: str
    """What errors call it."""
    cubins: dict[str, list[bytes]]
    """By architecture, as whoever put them together says; of one alone ``""``: that of the cubin itself."""

    @property
    def archs(self) -> str:
        """``sm_80, sm_90``"""
        return ", ".join(self.cubins)


def code_of(site: Site, given: Any) -> GivenCode:
    """The cubins that ``from_cubin`` was given: one, those of a container, or one for each architecture.

    Raises ``BadArgument``, ``MissingSource``, ``BadContainer``, ``ToolchainMissing``.
    """
    if not isinstance(given, Mapping):
        place, content = cubin_content(site, given)
        if is_cubin(content) or not begins_as_container(content):
            return GivenCode(place, {"": [content]})
        cubins = cubins_by_arch(content, place)
        if not cubins:
            raise BadContainer(f"{place}: it holds no machine code for a GPU; PTX alone is nothing to gate")
        return GivenCode(place, cubins)
    if not given:
        raise BadArgument("from_cubin: {} names no architecture; give {'sm_90': path}")
    unknown = [arch for arch in given if arch not in SPELLINGS]
    if unknown:
        raise BadArgument(f"from_cubin: {unknown[0]!r} is no architecture; give {{'sm_90': path}}")
    found = {arch: cubin_content(site, one) for arch, one in given.items()}
    return GivenCode(", ".join(place for place, _ in found.values()), {arch: [one] for arch, (_, one) in found.items()})


class Chosen(NamedTuple):
    """What a run wants of machine code."""

    targets: tuple[str, ...]
    native: str | None
    """Architecture of the GPU; None without one."""
    by_test: bool
    """Whether the test named the targets, which all have to be there then."""
    by_run: bool
    """Whether the run did: then they have to be in code for several architectures."""


class Binaries(NamedTuple):
    """A kernel for several architectures."""

    binaries: dict[str, KernelBinary]
    targets: tuple[str, ...]
    native: str | None


def binaries_of(given: GivenCode, symbol: str, chosen: Chosen, *, name: str, source: str) -> Binaries:
    """The kernel for its targets and for the GPU.  Raises as ``from_cubin``."""
    require("from_cubin", "source", source, str)
    if [*given.cubins] == [""]:
        (content,) = given.cubins[""]
        binary = ready_made(content, symbol, place=given.place, name=name, source=source)
        if chosen.by_test:
            _targets_in(given._replace(cubins={binary.arch: [content]}), chosen.targets, asked=True)
        return Binaries({binary.arch: binary}, (binary.arch,), checked_native(chosen.native, binary, given.place))
    targets = _targets_in(given, chosen.targets, asked=chosen.by_test or chosen.by_run)
    native = _native_in(given, chosen.native)
    binaries = {
        arch: ready_made_among(given.cubins[arch], arch, symbol, place=given.place, name=name, source=source)
        for arch in dict.fromkeys([*targets, *([native] if native else [])])
    }
    return Binaries(binaries, targets, native)


def checked_native(native: str | None, binary: KernelBinary, place: str) -> str | None:
    """The architecture of ready-made code, if there is a GPU, which then has to be of that architecture."""
    if native not in (None, binary.arch):
        raise LoadError(
            f"{place}: it is machine code for {binary.arch}, and this GPU is {native}: compile it for {native}"
        )
    return native


def _targets_in(given: GivenCode, targets: Sequence[str], *, asked: bool) -> tuple[str, ...]:
    """The targets of a kernel, which all have to be there if somebody ``asked`` for them; else those that are, or all.

    Raises ``BadArgument``.
    """
    missing = [target for target in targets if target not in given.cubins]
    if missing and asked:
        raise BadArgument(
            f"{given.place}: there is no machine code for {', '.join(missing)} in it; it has {given.archs}. Compile it "
            "for that too, or ask for those that are there"
        )
    return tuple(target for target in targets if target not in missing) or tuple(given.cubins)


def _native_in(given: GivenCode, native: str | None) -> str | None:
    """What a GPU of the architecture ``native`` runs: its own, else a variant of it; None without a GPU.

    Raises ``LoadError`` if there is neither.
    """
    if native is None:
        return None
    fitting = [arch for arch in given.cubins if plain(arch) == native]
    if not fitting:
        raise LoadError(
            f"{given.place}: it has machine code for {given.archs}, and this GPU is {native}: compile it for that too"
        )
    return native if native in fitting else fitting[0]
