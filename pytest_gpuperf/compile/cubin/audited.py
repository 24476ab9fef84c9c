"""The kernels of files that are already built, as an audit sees them, by its ELF sections alone: 0.1 ms for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.compile.compile_errors import BadContainer, BadCubin
from pytest_gpuperf.compile.cubin.built_files import built_files
from pytest_gpuperf.compile.cubin.code_hash import bytes_hash
from pytest_gpuperf.compile.cubin.cubin_reader import Cubin, CubinKernel, read_cubin
from pytest_gpuperf.compile.cubin.fatbin import FoundCubin
from pytest_gpuperf.compile.cubin.occupancy import THREADS_PER_BLOCK, occupancy_of
from pytest_gpuperf.compile.cubin.stable_names import stable_symbol
from pytest_gpuperf.model.architectures import ARCHITECTURES, WARP_THREADS, plain
from pytest_gpuperf.model.audited_kernel import AuditedKernel, BlockFrom
from pytest_gpuperf.model.evidence import Occupancy, StaticProfile, StaticRecord

_DIGITS = 24
"""Of a hash: 96 bits tell a million kernels apart."""
_MOST_THREADS = 1 << 20
"""That a file may claim for a block; none can be launched with more than 1,024."""


class CodeAt(NamedTuple):
    """Where the machine code of a kernel lies."""

    cubin: FoundCubin
    symbol: str
    """In the cubin."""


class Built(NamedTuple):
    """A file that is already built, read."""

    files: dict[str, dict[str, dict[str, list[AuditedKernel]]]]
    """As ``model.audited_kernel.Files``."""
    code: dict[tuple[str, str, str], list[CodeAt]]
    """By file, stable symbol and architecture, in the order of the list that has the figures."""
    unread: list[str]
    """Of what is in a wheel: each file that cannot be read, with the reason."""

    def within(self, folder: str) -> Built:
        """The same, each file by a longer name: that of the folder first."""

        def named(name: str) -> str:
            return f"{folder}/{name}"

        return Built(
            {named(name): kernels for name, kernels in self.files.items()},
            {(named(name), symbol, arch): code for (name, symbol, arch), code in self.code.items()},
            [named(line) for line in self.unread],
        )

    def under(self, name: str) -> Built:
        """The same, of a single file, which is called ``name`` now."""
        (kernels,) = self.files.values()
        return Built({name: kernels}, {(name, symbol, arch): code for (_, symbol, arch), code in self.code.items()}, [])


def read_built(file: Path, folder: Path, skip: Sequence[str] = ()) -> Built:
    """Every kernel of every architecture in the file; cubins are put into the empty ``folder``.

    In a wheel, files whose names match a pattern of ``skip`` are left out.
    Raises ``BadContainer`` with the reason where nothing at all can be read, and ``ToolchainMissing``.
    """
    built = Built({}, {}, [])
    for one in built_files(file, folder, skip):
        try:
            if one.problem:
                raise BadContainer(one.problem)
            _add(built, one.name, [(found, *_read(one.name, found)) for found in one.cubins])
        except BadContainer as problem:
            built.unread.append(str(problem))
    if not built.files:
        raise BadContainer("\n".join(built.unread))
    return built


def _add(built: Built, name: str, cubins: Sequence[tuple[FoundCubin, Cubin, str]]) -> None:
    """Add the kernels of a file; of one that it holds linked too only what was linked counts."""
    kernels = built.files.setdefault(name, {})
    linked = {(arch, symbol) for _, cubin, arch in cubins if not cubin.elf.relocatable for symbol in cubin.kernels}
    for found, cubin, arch in cubins:
        for symbol, kernel in cubin.kernels.items():
            if cubin.elf.relocatable and (arch, symbol) in linked:
                continue
            stable = stable_symbol(symbol)
            kernels.setdefault(stable, {}).setdefault(arch, []).append(_audited(cubin, kernel, arch))
            built.code.setdefault((name, stable, arch), []).append(CodeAt(found._replace(arch=arch), symbol))


def _read(name: str, found: FoundCubin) -> tuple[Cubin, str]:
    """A cubin and its architecture.  Raises ``BadContainer``."""
    try:
        cubin = read_cubin(found.path.read_bytes())
    except BadCubin as problem:
        raise BadContainer(f"{name}: the machine code for {found.arch or 'a GPU'} in it is {problem}") from problem
    return cubin, found.arch or cubin.arch


def record_of(kernel: AuditedKernel, name: str, arch: str) -> StaticRecord:
    """The kernel as a record that ``judge.static_verdict`` compares: what only its instructions tell is empty."""
    profile = StaticProfile(
        registers=kernel.registers, stack_bytes=kernel.stack_bytes, spill_store_bytes=None, spill_load_bytes=None,
        shared_bytes=kernel.shared_bytes, constant_bytes=kernel.constant_bytes, barriers=kernel.barriers,
        code_bytes=kernel.code_bytes, instructions=0, opcodes={}, code_hash=kernel.code,
    )  # fmt: skip
    return StaticRecord(
        kernel=name,
        source_hash="",
        profile=profile,
        block=(kernel.block_threads, 1, 1),
        occupancy=_reached(kernel, arch),
    )


def _reached(kernel: AuditedKernel, arch: str) -> Occupancy | None:
    if not kernel.block_threads or plain(arch) not in ARCHITECTURES:
        return None
    return occupancy_of(kernel.registers, kernel.shared_bytes, kernel.block_threads, plain(arch))


def _audited(cubin: Cubin, kernel: CubinKernel, arch: str) -> AuditedKernel:
    threads, why = _block(kernel, arch)
    return AuditedKernel(
        code=bytes_hash(cubin, kernel)[:_DIGITS], registers=kernel.registers, stack_bytes=kernel.stack_bytes,
        shared_bytes=kernel.shared_bytes, constant_bytes=kernel.constant_bytes, barriers=kernel.barriers,
        code_bytes=kernel.code_bytes, block_threads=threads, block_from=why,
    )  # fmt: skip


def _block(kernel: CubinKernel, arch: str) -> tuple[int, BlockFrom]:
    """Threads of a block, and why so many."""
    if kernel.required_block is not None:
        x, y, z = kernel.required_block
        return min(x * y * z, _MOST_THREADS), "required"
    if kernel.max_threads_per_block:
        return min(kernel.max_threads_per_block, _MOST_THREADS), "bound"
    if plain(arch) not in ARCHITECTURES:
        return 0, "best"
    sizes = range(WARP_THREADS, THREADS_PER_BLOCK + 1, WARP_THREADS)
    return max(sizes, key=lambda size: _warps(kernel, arch, size)), "best"


def _warps(kernel: CubinKernel, arch: str, threads: int) -> int:
    return occupancy_of(kernel.registers, kernel.shared_bytes, threads, plain(arch)).warps_per_sm
