"""``gpuperf init``: what a repository needs for its first gated kernel.  Nothing is overwritten."""

from __future__ import annotations

import argparse
import itertools
import json
import keyword
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.compile.compile_errors import CompileProblem, ToolchainMissing
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.doctor.findings import HostMachine
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.model.architectures import FALLBACK_ARCHS
from pytest_gpuperf.process.repository import checkout_around

FILES = Path(__file__).with_name("init_files")
"""What is written and said."""
MOST_FILES, MOST_TRIED = 2000, 50
"""CUDA sources that are looked through, and kernels that are compiled in search of one that needs nothing else."""
SKIPPED = frozenset({"build", "node_modules", "third_party", "external", "extern", "vendor", "site-packages"})
"""Folders whose kernels are hardly the repository's own; hidden ones are left out too."""
BOUNDS = r"(?:__launch_bounds__\s*\([^)]*\)\s*)?"
SIGNATURE = re.compile(
    rf"(template\s*<[^;{{}}]*>\s*)?(?:\b(?:static|extern\s*\"C\")\s+)*{BOUNDS}"
    rf"\b__global__\s+{BOUNDS}void\s+{BOUNDS}(\w+)\s*\(([^)]*)\)",
    re.DOTALL,
)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
QUALIFIER = re.compile(r"\b(const|__restrict__|restrict|volatile)\b")
USUAL_BLOCK = 256
DTYPES = {
    "float": "float32", "double": "float64", "int": "int32", "unsigned": "uint32", "unsigned int": "uint32",
    "long long": "int64", "unsigned long long": "uint64", "char": "int8", "unsigned char": "uint8",
    "int32_t": "int32", "uint32_t": "uint32", "int64_t": "int64", "uint64_t": "uint64", "size_t": "uint64",
}  # fmt: skip
"""What arguments of a kernel are in a test, by their C++ types."""
TAKEN = frozenset({"cuda_kernel", "gpu", "gpuperf", "launch", "n"})
"""Names that the test itself uses."""
ATTRIBUTES = b"baselines/**/*.cubin.z binary"
NVRTC = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
SETTINGS = ("pytest.toml", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Files by which pytest takes a folder for its root."""


class FoundKernel(NamedTuple):
    source: Path
    name: str
    arguments: tuple[tuple[str, str, bool], ...]
    """Type, name, and whether it is a pointer."""
    block: int = USUAL_BLOCK
    """Threads that a block of the test has."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", type=Path, default=Path(), help="default: the current folder"
    )


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Write what is not there yet below the folder, and say the next command; returns the exit status, 0.

    Raises ``GpuperfError`` and ``OSError``.
    """
    folder: Path = parsed.folder
    if not folder.is_dir():
        raise GpuperfError(f"{folder} is no folder: name the one of your repository")
    sources = _sources(folder)
    found = next(filter(None, map(compiled, itertools.islice(kernels_in(sources), MOST_TRIED))), None)
    if found is not None:
        files = {found.source.parent / f"test_{found.name}.py": _test_of(found)}
    else:
        sample = folder / "kernels"
        files = {sample / "axpy.cu": _text("axpy.cu"), sample / "test_axpy.py": _text("test_axpy.txt")}
    if not any((folder / name).exists() for name in SETTINGS):
        files[folder / "pytest.ini"] = "[pytest]\ntestpaths = .\n"
    files[folder / ".github" / "workflows" / "gpuperf.yml"] = _text("gpuperf.yml")
    if nvrtc := next(filter(None, map(HostMachine().version, NVRTC)), ""):
        files[folder / "gpuperf-constraints.txt"] = f"nvidia-cuda-nvrtc=={nvrtc}\n"
    for path, text in files.items():
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text.encode())
            write(f"written  {path.relative_to(folder)}\n")
        else:
            write(f"kept     {path.relative_to(folder)}\n")
    _attributes(folder / ".gitattributes", write)
    note = _text("no_kernel.txt") if found is None and sources else ""
    here = folder.resolve()
    top = checkout_around(here)
    if top not in (None, here):
        note += _text("elsewhere.txt").format(top=top, inside=json.dumps(here.relative_to(top).as_posix()))
    write(f"\n{note}{_text('next.txt').format(git='' if top else 'git init && ')}")
    return 0


def _text(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


def _sources(folder: Path) -> list[Path]:
    """CUDA sources below the folder, as many as are looked through."""

    def is_skipped(path: Path) -> bool:
        return any(part.startswith(".") or part in SKIPPED for part in path.relative_to(folder).parts[:-1])

    found = (path for path in sorted(folder.rglob("*.cu")) if path.is_file() and not is_skipped(path))
    return list(itertools.islice(found, MOST_FILES))


def kernels_in(sources: list[Path]) -> Iterator[FoundKernel]:
    """Kernels whose arguments a test can make up, in the order of their files."""
    for path in sources:
        text = COMMENT.sub(" ", path.read_text(encoding="utf-8", errors="replace"))
        for template, name, parameters in SIGNATURE.findall(text):
            arguments = arguments_of(parameters)
            if arguments is not None and not template:
                yield FoundKernel(path, name, arguments)


def arguments_of(parameters: str) -> tuple[tuple[str, str, bool], ...] | None:
    """Types and names of a kernel's parameters; None if one of them is no number and no array of numbers."""
    found = []
    for one in filter(None, (part.strip() for part in parameters.split(","))):
        words = QUALIFIER.sub(" ", one).replace("*", " * ").split()
        stars = words.count("*")
        kind, name = " ".join(word for word in words[:-1] if word != "*"), words[-1]
        if kind not in DTYPES or stars > 1 or not name.isidentifier():
            return None
        found.append((kind, name, bool(stars)))
    return tuple(found)


def compiled(kernel: FoundKernel) -> FoundKernel | None:
    """The kernel, with the block that its machine code allows; None if it does not compile as a test would have it.

    As it is found where there is no compiler.
    """
    try:
        text = kernel.source.read_text(encoding="utf-8-sig")
        binary = compile_kernel(KernelSource(text, kernel.name, kernel.source.absolute()), FALLBACK_ARCHS[0])
    except ToolchainMissing:
        return kernel
    except (CompileProblem, BadArgument, UnicodeDecodeError):
        return None
    return kernel._replace(block=min(kernel.block, binary.max_threads_per_block or kernel.block))


def _test_of(kernel: FoundKernel) -> str:
    """The kernel's test; arguments have their own names, where Python and the test leave these."""
    arrays, args = [], []
    for place, (kind, name, is_pointer) in enumerate(kernel.arguments):
        called = f"{name}_" if keyword.iskeyword(name) or name in TAKEN else name
        if is_pointer:
            arrays.append(f'    {called} = gpu.random(n, "{DTYPES[kind]}", seed={place})')
        args.append(called if is_pointer else "1.0" if kind in ("float", "double") else "n")
    file = json.dumps(kernel.source.name, ensure_ascii=False)
    return _text("test_found.txt").format(
        kernel=kernel.name, source=file[1:-1], file=file, arrays="\n".join(arrays), block=kernel.block,
        args=f"{args[0]}," if len(args) == 1 else ", ".join(args),
    )  # fmt: skip


def _attributes(path: Path, write: Callable[[str], object]) -> None:
    """Add the line that baselines need; what is there stays, byte for byte."""
    before = path.read_bytes() if path.exists() else b""
    if ATTRIBUTES in before.splitlines():
        write(f"kept     {path.name}\n")
        return
    joint = b"" if not before or before.endswith(b"\n") else b"\n"
    write_whole(path, before + joint + ATTRIBUTES + b"\n")
    write(f"{'added to' if before else 'written '} {path.name}\n")
