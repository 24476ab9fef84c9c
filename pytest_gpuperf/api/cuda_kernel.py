"""``cuda_kernel``: kernels with their static evidence, compiled here or taken as others compiled them."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_gpuperf.api.kernel_files import handed_cubins, header_places, source_text
from pytest_gpuperf.arguments import BadArgument, one_line, require, require_list
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.compile import compiler as compiling
from pytest_gpuperf.compile.adapters.cupy import read_cupy
from pytest_gpuperf.compile.adapters.cute import read_cute
from pytest_gpuperf.compile.adapters.cutile import read_cutile
from pytest_gpuperf.compile.adapters.handed import OWN_ARCH, Handed, binary_for
from pytest_gpuperf.compile.adapters.numba import read_numba
from pytest_gpuperf.compile.adapters.triton import read_triton
from pytest_gpuperf.compile.listing import Listing
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.compile.source import NVCC, NVRTC, KernelSource
from pytest_gpuperf.device.device_errors import DeviceNeeded, LoadError
from pytest_gpuperf.device.launch import Kernel
from pytest_gpuperf.device.other_compilers import CuteKernel, CutileKernel, NumbaKernel, TritonKernel
from pytest_gpuperf.model.architectures import plain
from pytest_gpuperf.model.evidence import KernelBinary, StaticProfile
from pytest_gpuperf.run import Run
from pytest_gpuperf.stash import CompileLocation

_COMPILERS = (NVRTC, NVCC)
_NO_DRIVER = "CudaSupportError"
"""Numba's exception where there is no driver: it compiles device functions that a kernel calls for the GPU there is."""


class KernelCompiler:
    """``cuda_kernel(path_or_source, name, ...) -> Kernel``: compiles a kernel and takes its static evidence.

    * ``path_or_source``: a path relative to the test file (in a fixture of a wider scope, to the file that defines it);
      or CUDA C++ source, which has a line break or a brace.
    * ``name``: the ``__global__`` function.
    * ``options``: a list of NVRTC's options, as CuPy takes them: ``["-DTILE=32", "-maxrregcount=32"]``.
    * ``name_expression``: a template instantiation such as ``"transpose<32, float>"``.
    * ``headers``: folders or files to include from, relative to the same file.
    * ``compiler``: ``"nvcc"`` has an installed nvcc compile the file, host code included; options are nvcc's.
    * ``arch``: the static targets of this kernel, instead of the run's: ``"sm_90a"``, or a list.

    Raises ``BadArgument``, ``MissingSource``, ``CompileError``, ``UnknownKernel``, ``ToolchainMissing``, ``BadOption``
    and ``UnknownArchitecture``.
    """

    def __init__(self, run: Run, location: Callable[[], CompileLocation]) -> None:
        """``location`` tells which test or fixture compiles now."""
        self._run = run
        self._location = location

    def __call__(
        self, path_or_source: str | Path, name: str, *, options: Sequence[str] = (), name_expression: str | None = None,
        headers: Sequence[str | Path] = (), arch: str | Sequence[str] | None = None, compiler: str = NVRTC,
    ) -> Kernel:  # fmt: skip
        require("cuda_kernel", "path_or_source", path_or_source, str, os.PathLike)
        require("cuda_kernel", "name", name, str)
        require_list("cuda_kernel", "options", options)
        require_list("cuda_kernel", "headers", headers, str, os.PathLike)
        if name_expression is not None:
            require("cuda_kernel", "name_expression", name_expression, str)
        if compiler not in _COMPILERS:
            raise BadArgument(f"cuda_kernel: compiler={compiler!r} is none of {', '.join(_COMPILERS)}")
        location = self._location()
        path, text = source_text(location, path_or_source)
        source = KernelSource(
            text=text, name=str(name), path=path, options=tuple(options),
            name_expression=None if name_expression is None else str(name_expression),
            headers=header_places(location, headers), compiler=compiler,
        )  # fmt: skip
        by_nvcc = [f"compiler={NVCC}"] if compiler == NVCC else []
        return self._compiled(source, arch, [*options, *(f"headers={header}" for header in headers), *by_nvcc])

    def from_cubin(
        self, cubin: bytes | str | Path | Mapping[str, bytes | str | Path], symbol: str, *, name: str | None = None,
        source: str = "", arch: str | Sequence[str] | None = None,
    ) -> Kernel:  # fmt: skip
        """A kernel out of ready-made machine code: of one architecture, or of several.

        ``cubin`` is a cubin's content or path (as above), a container of several (a fat binary, library or object), or
        a cubin for each architecture: ``{"sm_80": "k80.cubin", "sm_90": "k90.cubin"}``.  ``symbol`` is the kernel's
        symbol in it, or the name of a C++ function that is no template; ``name`` is what baselines and reports call it.
        ``source``, where it is at hand, tells a changed source from a changed compiler.  Of several architectures those
        are gated that the run asks for, or ``arch``, and this GPU's own is launched.
        Raises ``BadArgument``, ``MissingSource``, ``BadCubin``, ``UnknownKernel``,
        ``UnknownArchitecture``, ``ToolchainMissing``, and ``LoadError`` if there is no code for this GPU.
        """
        symbol, called = one_line("from_cubin", "symbol", symbol), one_line("from_cubin", "name", name) if name else ""
        location = self._location()
        require("from_cubin", "source", source, str)
        handed = handed_cubins(location, cubin, symbol, called, source)
        by_run = bool(self._run.options.archs) and OWN_ARCH not in handed.cubins  # of one alone a run asks for many
        binaries, targets, native = self._chosen(handed, self._targets(arch), all_of_them=arch is not None or by_run)
        return Kernel(binaries, device=self._run.device, native=native, targets=targets)

    def from_numba(self, dispatcher: Any, signature: Any, *, arch: str | Sequence[str] | None = None) -> NumbaKernel:
        """A kernel that Numba compiles, for every target and without a GPU, launched by this plugin.

        ``dispatcher`` is what ``@numba.cuda.jit`` makes of a function, ``signature`` a signature of Numba's types, as
        ``numba.void(numba.float32[::1], numba.int32)``, or a tuple of them: arrays and numbers.
        Raises ``UnsupportedKernel`` for one that only Numba can compile or launch, ``UnknownArchitecture`` and
        ``ToolchainMissing``.
        """
        targets = tuple(dict.fromkeys(map(plain, self._targets(arch))))
        _, wanted = self._wanted(targets)
        try:
            handed = read_numba(dispatcher, signature, wanted)
        except Exception as problem:
            if self._run.has_gpu or type(problem).__name__ != _NO_DRIVER:
                raise
            raise DeviceNeeded("Numba compiles the device functions of a kernel") from problem
        return NumbaKernel(handed, *self._chosen(handed, targets), device=self._run.device)

    def from_triton(self, compiled: Any, *, config: Any = None) -> TritonKernel:
        """A kernel that Triton compiled, launched by this plugin so that it can be paired with its baseline.

        ``compiled`` is what ``kernel.warmup(...)``, ``kernel[grid](...)`` or ``triton.compile(...)`` return;
        ``config`` is the ``best_config`` of an autotuned kernel behind that call, or a mapping of what was chosen.
        It is recorded, and machine code of another configuration is NOT-COMPARABLE.
        Raises ``UnsupportedKernel`` for one that only Triton's own launcher can launch (scratch memory, tuples, tensor
        descriptors without TMA), ``BadArgument`` for a ``config`` that the kernel was not compiled with, and as
        ``from_cubin``.
        """
        handed = read_triton(compiled, config)
        return TritonKernel(handed, *self._chosen(handed), device=self._run.device)

    def from_cupy(self, kernel: Any, name: str | None = None, *, arch: str | Sequence[str] | None = None) -> Kernel:
        """A ``RawKernel``, or the kernel ``name`` of a ``RawModule``, compiled here as CuPy would compile it.

        That is for every target and without a GPU.  It is launched as ``cuda_kernel``'s own, and cooperatively if CuPy
        would.  Raises ``UnsupportedKernel`` for anything else, and as ``cuda_kernel``.
        """
        code = read_cupy(kernel, name)
        if code.source is None:
            made = self.from_cubin(Path(code.path).absolute(), code.name)
        else:
            made = self._compiled(code.source, arch, code.options)
        made.cooperative = code.cooperative
        return made

    def _compiled(self, source: KernelSource, arch: str | Sequence[str] | None, options: Sequence[str] = ()) -> Kernel:
        """The kernel of a source for all targets and this GPU, noted with ``options`` as its label."""
        location = self._location()
        targets = self._targets(arch)
        native, wanted = self._wanted(targets)
        cache = self._run.compile_cache
        binaries = compiling.compile_for(source, wanted, cache, self._recorded(location.record.module, wanted))
        listing = Listing(source, self._run.config.rootpath / location.record.module)
        self._run.listings |= {(one.cubin_hash, one.symbol): listing for one in binaries.values()}
        file = source.path.name if source.path is not None else ""
        self._note({target: binaries[target] for target in targets}, options, file)
        kernel = Kernel(binaries, device=self._run.device, native=native, targets=targets)
        kernel.ptx_of = lambda which: compiling.ptx(source, which, cache)
        return kernel

    def from_cute(self, compiled: Any, *, symbol: str = "", name: str = "") -> CuteKernel:
        """A kernel that the CuTe DSL compiled, launched by this plugin so that it can be paired with its baseline.

        ``compiled`` is what ``cute.compile(..., options="--keep-cubin")`` returned, or a list of such, one for each
        architecture.  ``symbol`` names one of several kernels in it; ``name`` is what baselines and reports call it.
        Raises ``UnsupportedKernel`` with the remedy where its machine code was not kept, and as ``from_cubin``.
        """
        handed = read_cute(compiled, symbol, one_line("from_cute", "name", name) if name else "")
        return CuteKernel(handed, *self._chosen(handed), device=self._run.device)

    def from_cutile(
        self, kernel: Any, signature: Any, *, name: str = "", arch: str | Sequence[str] | None = None
    ) -> CutileKernel:
        """A kernel of cuTile, compiled for every target of the run and launched by this plugin.

        ``kernel`` is a ``cuda.tile.kernel`` and ``signature`` its ``cuda.tile.compilation.KernelSignature``;
        ``name`` is what baselines and reports call it, ``arch`` the targets in the place of the run's.
        Raises ``UnsupportedKernel`` for what cuTile cannot compile, and for lists and tuples as arguments.
        """
        targets = tuple(dict.fromkeys(map(plain, self._targets(arch))))
        _, wanted = self._wanted(targets)
        handed = read_cutile(kernel, signature, wanted, one_line("from_cutile", "name", name) if name else "")
        return CutileKernel(handed, *self._chosen(handed, targets), device=self._run.device)

    def _chosen(
        self, handed: Handed, targets: tuple[str, ...] = (), *, all_of_them: bool = False
    ) -> tuple[dict[str, KernelBinary], tuple[str, ...], str | None]:
        """A kernel for the ``targets`` that are there, all if none is, and for this GPU; its evidence is noted.

        Raises ``BadArgument`` where ``all_of_them`` are to be there, ``LoadError`` if this GPU has no code, and as
        ``binary_for``.
        """
        gpu, alone = self._run.native_arch, binary_for(handed, OWN_ARCH) if OWN_ARCH in handed.cubins else None
        there = [*handed.cubins] if alone is None else [alone.arch]
        missing = [target for target in targets if target not in there]
        if missing and all_of_them:
            raise BadArgument(
                f"{handed.place}: it has no machine code for {', '.join(missing)}, only for {', '.join(there)}. "
                "To do: compile it for the missing ones too, or pass arch= with those that it has"
            )
        fitting = [arch for arch in there if gpu in (arch, plain(arch))]
        native = gpu if gpu in fitting else next(iter(fitting), None)
        if gpu is not None and native is None:
            found = f"it is machine code for {', '.join(there)}, and this GPU is {gpu}"
            raise LoadError(f"{handed.place}: {found}: compile it for {gpu}")
        wanted = tuple(target for target in targets if target not in missing) or tuple(there)
        archs = dict.fromkeys([*wanted, *([native] if native else [])])
        binaries = {arch: alone or binary_for(handed, arch) for arch in archs}
        self._note({target: binaries[target] for target in wanted}, handed.label)
        return binaries, wanted, native

    def _note(self, binaries: Mapping[str, KernelBinary], options: Sequence[str] = (), file: str = "") -> None:
        """Put the static evidence of one kernel on the test's record."""
        test, first = self._location().record, next(iter(binaries.values()))
        test.cubins |= {binary.cubin_hash: binary.cubin for binary in binaries.values()}
        records = {arch: binary.record() for arch, binary in binaries.items()}
        test.add_compiled(first.name, records, first.toolchain, options, file)

    def _recorded(self, module: str, archs: Sequence[str]) -> Mapping[str, StaticProfile]:
        """Recorded profiles of the module's tests, by the hash of their code: machine code is not read again.

        None in an update, which reads what it records from the machine code.
        """
        options, store = self._run.options, self._run.store
        if not options.active or options.update is not None:
            return {}
        try:
            return ChainMap(*(store.profiles(arch, module, toolchain()) for arch in archs))
        except BaselineError:  # for the judge to tell
            return {}

    def _targets(self, arch: str | Sequence[str] | None) -> tuple[str, ...]:
        if arch is None:
            return self._run.targets
        given = [arch] if isinstance(arch, str) else arch
        require_list("cuda_kernel", "arch", given, str)
        if not given:
            raise BadArgument("cuda_kernel: arch=() names no architecture: leave it out to use those of the run")
        return tuple(map(str, given))

    def _wanted(self, targets: tuple[str, ...]) -> tuple[str | None, list[str]]:
        """What this GPU runs, a target made for it (``sm_90a``) before its plain architecture; and all to compile."""
        native = self._run.native_arch
        if native is None:
            return None, list(dict.fromkeys(targets))
        native = next((target for target in targets if plain(target) == native), native)
        return native, list(dict.fromkeys([*targets, native]))
