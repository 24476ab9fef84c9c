"""Machine code that a test hands over, in every form, for the architectures that a run wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pytest_gpuperf.api.kernel_files import cubin_content
from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.compile.adapters.handed import OWN_ARCH, Handed, binary_for
from pytest_gpuperf.compile.compile_errors import BadContainer
from pytest_gpuperf.compile.machine_code.containers import begins_as_container, cubins_by_arch, is_cubin
from pytest_gpuperf.context.shared_fixtures import Site
from pytest_gpuperf.device.device_errors import LoadError
from pytest_gpuperf.model.architectures import SPELLINGS, plain
from pytest_gpuperf.model.evidence import KernelBinary


def handed_cubins(site: Site, given: Any, symbol: str, name: str, source: str) -> Handed:
    """The cubins that ``from_cubin`` was given: one, those of a container, or one for each architecture.

    Raises ``BadArgument``, ``MissingSource``, ``BadContainer``, ``ToolchainMissing``.
    """
    if not isinstance(given, Mapping):
        place, content = cubin_content(site, given)
        if is_cubin(content) or not begins_as_container(content):
            return Handed({OWN_ARCH: [content]}, symbol, place, name=name, source=source)
        cubins = cubins_by_arch(content, place)
        if not cubins:
            raise BadContainer(f"{place}: it holds no machine code for a GPU; PTX alone is nothing to gate")
        return Handed(cubins, symbol, place, name=name, source=source)
    if not given:
        raise BadArgument("from_cubin: {} names no architecture; give {'sm_90': path}")
    unknown = [arch for arch in given if arch not in SPELLINGS]
    if unknown:
        raise BadArgument(f"from_cubin: {unknown[0]!r} is no architecture; give {{'sm_90': path}}")
    found = {arch: cubin_content(site, one) for arch, one in given.items()}
    place = ", ".join(place for place, _ in found.values())
    return Handed({arch: [one] for arch, (_, one) in found.items()}, symbol, place, name=name, source=source)


class Chosen(NamedTuple):
    """A kernel for the architectures that a run wants."""

    binaries: dict[str, KernelBinary]
    targets: tuple[str, ...]
    native: str | None
    """What this GPU runs; None without one."""


def chosen_of(
    handed: Handed, targets: tuple[str, ...], native: str | None, *, by_test: bool = False, by_run: bool = False
) -> Chosen:
    """The kernel for the ``targets`` that are there, all if none is, and for a GPU of the architecture ``native``.

    Targets that were named ``by_test`` all have to be there, and those named ``by_run`` in code for several
    architectures.  Raises ``BadArgument``, ``LoadError`` if this GPU has no code, and as ``binary_for``.
    """
    alone = binary_for(handed, OWN_ARCH) if OWN_ARCH in handed.cubins else None
    there = [*handed.cubins] if alone is None else [alone.arch]
    missing = [target for target in targets if target not in there]
    if missing and (by_test or (by_run and alone is None)):
        raise BadArgument(
            f"{handed.place}: there is no machine code for {', '.join(missing)} in it; it has {', '.join(there)}. "
            "Compile it for that too, or ask for those that are there"
        )
    fitting = [arch for arch in there if native in (arch, plain(arch))]
    if native is not None and not fitting:
        raise LoadError(
            f"{handed.place}: it is machine code for {', '.join(there)}, and this GPU is {native}: compile it for "
            f"{native}"
        )
    native = native if native is None or native in fitting else fitting[0]
    wanted = tuple(target for target in targets if target not in missing) or tuple(there)
    archs = dict.fromkeys([*wanted, *([native] if native else [])])
    return Chosen({arch: alone or binary_for(handed, arch) for arch in archs}, wanted, native)
