"""``cuda_kernel``: kernels with their static evidence, compiled here or taken as others compiled them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_gpuperf.api.compiled_by_torch import compiled_by_torch
from pytest_gpuperf.api.given_code import Chosen, binaries_of, checked_native, code_of
from pytest_gpuperf.api.kernel_files import header_places, source_text
from pytest_gpuperf.api.precompile import name_expressions, recorded_codes, recorded_profiles
from pytest_gpuperf.arguments import BadArgument, one_line, plain_text, require, require_list
from pytest_gpuperf.compile import compiler as compiling
from pytest_gpuperf.compile.cupy_code import read_cupy, source_of
from pytest_gpuperf.compile.cute_code import read_cute
from pytest_gpuperf.compile.cutile_code import compile_cutile
from pytest_gpuperf.compile.numba_code import read_numba
from pytest_gpuperf.compile.nvrtc import NVCC, NVRTC
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.triton_code import read_triton, triton_binary
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.shared_fixtures import Site
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.device.device_errors import DeviceNeeded
from pytest_gpuperf.device.launch import Kernel
from pytest_gpuperf.device.other_compilers import CuteKernel, CutileKernel, NumbaKernel, TritonKernel, numba_binaries
from pytest_gpuperf.model.architectures import plain
from pytest_gpuperf.model.evidence import KernelBinary, StaticRecord

_COMPILERS = (NVRTC, NVCC)


class KernelCompiler:
    """``cuda_kernel(path_or_source, name, ...) -> Kernel``: compiles a kernel and takes its static evidence.

    * ``path_or_source``: a path relative to the test file (in a fixture of a wider scope, to the file that defines it);
      or CUDA C++ source, which is told by a line break or a brace in it.
    * ``name``: the ``__global__`` function.
    * ``options``: a list of NVRTC's options, as CuPy takes them: ``["-DTILE=32", "-maxrregcount=32"]``.
    * ``name_expression``: a template instantiation such as ``"transpose<32, float>"``.
    * ``headers``: folders or files to include from, relative to the same file.
    * ``compiler``: ``"nvcc"`` has an installed nvcc compile the file, host code included; options are nvcc's.
    * ``arch``: the static targets of this kernel, instead of the run's: ``"sm_90a"``, or a list.

    Raises ``BadArgument``, ``MissingSource``, ``CompileError``, ``UnknownKernel``, ``ToolchainMissing``, ``BadOption``
    and ``UnknownArchitecture``.
    """

    def __init__(self, worker: Worker, site: Callable[[], Site], items: Sequence[pytest.Item] = ()) -> None:
        """``site`` tells which test or fixture compiles now; ``items`` are the tests of this run."""
        self._worker = worker
        self._site = site
        self._items = items

    @property
    def _book(self) -> TestBook:
        return self._site().book

    def __call__(
        self,
        path_or_source: str | Path,
        name: str,
        *,
        options: Sequence[str] = (),
        name_expression: str | None = None,
        headers: Sequence[str | Path] = (),
        arch: str | Sequence[str] | None = None,
        compiler: str = NVRTC,
    ) -> Kernel:
        require("cuda_kernel", "path_or_source", path_or_source, str, os.PathLike)
        require("cuda_kernel", "name", name, str)
        require_list("cuda_kernel", "options", options)
        require_list("cuda_kernel", "headers", headers, str, os.PathLike)
        if name_expression is not None:
            require("cuda_kernel", "name_expression", name_expression, str)
        if compiler not in _COMPILERS:
            raise BadArgument(f"cuda_kernel: compiler={compiler!r} is none of {', '.join(_COMPILERS)}")
        site = self._site()
        path, text = source_text(site, path_or_source)
        source = KernelSource(
            text=text, name=plain_text(name), path=path, options=tuple(options),
            name_expression=None if name_expression is None else plain_text(name_expression),
            headers=header_places(site, headers), compiler=compiler,
        )  # fmt: skip
        self._worker.sources.update(place.resolve() for place in (path, *source.headers) if place is not None)
        by_nvcc = [f"compiler={NVCC}"] if compiler == NVCC else []
        return self._compiled(source, arch, [*options, *(f"headers={header}" for header in headers), *by_nvcc])

    def from_cubin(
        self,
        cubin: bytes | str | Path | Mapping[str, bytes | str | Path],
        symbol: str,
        *,
        name: str | None = None,
        source: str = "",
        arch: str | Sequence[str] | None = None,
    ) -> Kernel:
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
        site = self._site()
        given = code_of(site, cubin)
        by_run = bool(self._worker.options.archs)
        chosen = Chosen(self._targets(arch), self._worker.native_arch, arch is not None, by_run)
        binaries, targets, native = binaries_of(given, symbol, chosen, name=called, source=source)
        self._note({target: binaries[target] for target in targets})
        return Kernel(binaries, device=self._worker.device, native=native, targets=targets, shared_by=site.shared_by,
                      ptx=functools.partial(_no_ptx, given.place))  # fmt: skip

    def from_numba(self, dispatcher: Any, signature: Any, *, arch: str | Sequence[str] | None = None) -> NumbaKernel:
        """A kernel that Numba compiles, for every target and without a GPU, launched by this plugin.

        ``dispatcher`` is what ``@numba.cuda.jit`` makes of a function, ``signature`` a signature of Numba's types, as
        ``numba.void(numba.float32[::1], numba.int32)``, or a tuple of them: arrays and numbers.
        Raises ``UnsupportedNumbaKernel`` for one that only Numba can compile or launch, ``UnknownArchitecture`` and
        ``ToolchainMissing``.
        """
        function = read_numba(dispatcher, signature)
        targets = self._targets(arch)
        native, wanted = self._wanted(targets)
        binaries = numba_binaries(function, wanted, has_gpu=self._worker.has_gpu)
        self._note({target: binaries[target] for target in targets}, [of.label for of in function.arguments])
        return NumbaKernel(binaries, function, device=self._worker.device, native=native, targets=targets)

    def from_triton(self, compiled: Any, *, config: Any = None) -> TritonKernel:
        """A kernel that Triton compiled, launched by this plugin so that it can be paired with its baseline.

        ``compiled`` is what ``kernel.warmup(...)``, ``kernel[grid](...)`` or ``triton.compile(...)`` return;
        ``config`` is the ``best_config`` of an autotuned kernel behind that call, or a mapping of what was chosen.
        It is put on record, and machine code of another one is CONFIG-CHANGED.
        Raises ``UnsupportedTritonKernel`` for one that only Triton's own launcher can launch (scratch memory,
        clusters, a cooperative grid, tensor descriptors), ``BadArgument`` for a ``config`` that the kernel was not
        compiled with, and as ``from_cubin``.
        """
        code = read_triton(compiled, config)
        binary = triton_binary(code)
        native = checked_native(self._worker.native_arch, binary, f"{binary.name}, compiled by Triton")
        self._note({binary.arch: binary})
        return TritonKernel(binary, code, device=self._worker.device, native=native)

    def from_torch(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, StaticRecord]:
        """The static evidence of every Triton kernel that a function of ``torch.compile`` consists of, by its name.

        Calls ``function(*args, **kwargs)``, which compiles it anew, and so at their next call all other functions that
        ``torch.compile`` made: this is ``torch.compiler.reset()``.  Each kernel is judged by itself, and what PyTorch's
        autotuning chose is on record as that of ``from_triton``.  Time is that of the whole:
        ``gpuperf(lambda: function(...))``.  Needs a GPU, and PyTorch 2.9 to 2.15 where it had a choice.
        Raises ``UnsupportedTritonKernel`` if there is no Triton kernel, or if PyTorch does not tell which it launches.
        """
        if not self._worker.has_gpu:
            raise DeviceNeeded.for_("a function of torch.compile is compiled")
        self._worker.hold_gpu()
        kernels = compiled_by_torch(function, args, kwargs)
        self._worker.device.synchronize()
        for binary, record in kernels:
            self._book.cubins[binary.cubin_hash] = binary.cubin
            self._book.add_compiled(binary.name, {binary.arch: record}, binary.toolchain, (), "")
        self._site().check()
        return {binary.name: record for binary, record in kernels}

    def from_cupy(self, kernel: Any, name: str | None = None, *, arch: str | Sequence[str] | None = None) -> Kernel:
        """A ``RawKernel``, or the kernel ``name`` of a ``RawModule``, compiled here as CuPy would compile it.

        That is for every target and without a GPU.  It is launched as ``cuda_kernel``'s own, and cooperatively if CuPy
        would.  Raises ``UnsupportedCupyKernel`` for anything else, and as ``cuda_kernel``.
        """
        code = read_cupy(kernel, name)
        if code.path:
            made = self.from_cubin(Path(code.path).absolute(), code.name)
        else:
            first = self._targets(arch)[0]
            made = self._compiled(source_of(code, first, self._worker.compile_cache), arch, code.options)
        made.cooperative = code.cooperative
        return made

    def _compiled(self, source: KernelSource, arch: str | Sequence[str] | None, options: Sequence[str] = ()) -> Kernel:
        """The kernel of a source for all targets and this GPU, noted on the book with ``options`` as its label."""
        site = self._site()
        targets = self._targets(arch)
        native, wanted = self._wanted(targets)
        cache = self._worker.compile_cache
        on_record = functools.partial(recorded_profiles, self._worker, site.book, wanted)
        foreseen = functools.partial(self._foreseen, source.name_expression or source.name)
        binaries = compiling.compile_for(source, wanted, cache, foreseen, on_record)
        binaries = {target: self._as_recorded(source, binary, on_record) for target, binary in binaries.items()}
        file = source.path.name if source.path is not None else ""
        self._note({target: binaries[target] for target in targets}, options, file)
        return Kernel(binaries, device=self._worker.device, native=native, targets=targets, shared_by=site.shared_by,
                      ptx=lambda which: compiling.ptx(source, which, cache))  # fmt: skip

    def from_cute(self, compiled: Any, *, symbol: str = "", name: str = "") -> CuteKernel:
        """A kernel that the CuTe DSL compiled, launched by this plugin so that it can be paired with its baseline.

        ``compiled`` is what ``cute.compile(..., options="--keep-cubin")`` returned, or a list of such, one for each
        architecture.  ``symbol`` names one of several kernels in it; ``name`` is what baselines and reports call it.
        Raises ``UnsupportedDslKernel`` with the remedy where its machine code was not kept, and as ``from_cubin``.
        """
        codes = read_cute(compiled, symbol, one_line("from_cute", "name", name) if name else "")
        first = next(iter(codes.values())).binary
        native = self._worker.native_arch
        if native not in codes:
            native = checked_native(self._worker.native_arch, first, f"{first.name}, compiled by the CuTe DSL")
        self._note({arch: code.binary for arch, code in codes.items()})
        return CuteKernel(codes, device=self._worker.device, native=native)

    def from_cutile(
        self, kernel: Any, signature: Any, *, name: str = "", arch: str | Sequence[str] | None = None
    ) -> CutileKernel:
        """A kernel of cuTile, compiled for every target of the run and launched by this plugin.

        ``kernel`` is a ``cuda.tile.kernel`` and ``signature`` its ``cuda.tile.compilation.KernelSignature``;
        ``name`` is what baselines and reports call it, ``arch`` the targets in the place of the run's.
        Raises ``UnsupportedDslKernel`` for what cuTile cannot compile, and for lists and tuples as arguments.
        """
        targets = tuple(dict.fromkeys(map(plain, self._targets(arch))))
        native, wanted = self._wanted(targets)
        code = compile_cutile(kernel, signature, wanted, one_line("from_cutile", "name", name) if name else "")
        self._note({target: code.binaries[target] for target in targets})
        return CutileKernel(code, device=self._worker.device, native=native, targets=targets)

    def _as_recorded(self, source: KernelSource, binary: KernelBinary, on_record: compiling.OnRecord) -> KernelBinary:
        """The binary, or that on record if the compiler makes either of this source."""
        codes = recorded_codes(self._worker, self._book, binary)
        if not codes or binary.profile.code_hash in codes:
            return binary
        return compiling.as_recorded(source, binary, codes, self._worker.compile_cache, on_record)

    def _note(self, binaries: Mapping[str, KernelBinary], options: Sequence[str] = (), file: str = "") -> None:
        """Put the static evidence of one kernel on the test's book."""
        for binary in binaries.values():
            self._book.cubins[binary.cubin_hash] = binary.cubin
        first = next(iter(binaries.values()))
        records = {arch: binary.record() for arch, binary in binaries.items()}
        self._book.add_compiled(first.name, records, first.toolchain, options, file)
        self._site().check()

    def _foreseen(self, kernel: str, source_hash: str) -> tuple[str | None, ...]:
        nodes = (item.nodeid.partition("::") for item in self._items)
        tests = {test for module, _, test in nodes if module == self._book.module}
        return name_expressions(self._worker, self._book, tests, kernel, source_hash)

    def _targets(self, arch: str | Sequence[str] | None) -> tuple[str, ...]:
        if arch is None:
            return self._worker.targets
        if isinstance(arch, str):
            return (plain_text(arch),)
        require_list("cuda_kernel", "arch", arch, str)
        targets = tuple(map(plain_text, arch))
        if not targets:
            raise BadArgument("cuda_kernel: arch=() names no architecture; leave it out for those of the run")
        return targets

    def _wanted(self, targets: tuple[str, ...]) -> tuple[str | None, list[str]]:
        """What this GPU runs, a target made for it (``sm_90a``) before its plain architecture; and all to compile."""
        native = self._worker.native_arch
        if native is None:
            return None, list(dict.fromkeys(targets))
        native = next((target for target in targets if plain(target) == native), native)
        return native, list(dict.fromkeys([*targets, native]))


def _no_ptx(place: str, arch: str) -> str:
    raise BadArgument(f"{place}: it is machine code alone, there is no PTX of it for {arch}")
