"""``gpuperf init``: what a repository needs for its first gated kernel.  Nothing is overwritten."""

from __future__ import annotations

import argparse
import itertools
import json
import keyword
import re
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.compile.compile_errors import CompileProblem, ToolchainMissing
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.model.architectures import FALLBACK_ARCHS
from pytest_gpuperf.process.repository import checkout_around

FILES = Path(__file__).with_name("init_files")
"""What is written as it is."""
MOST_FILES = 2000
"""CUDA sources that are looked through for a kernel."""
SKIPPED = frozenset({"build", "node_modules", "third_party", "external", "extern", "vendor", "site-packages"})
"""Folders whose kernels are hardly the repository's own; hidden ones are left out too."""
BOUNDS = r"(?:__launch_bounds__\s*\([^)]*\)\s*)?"
SIGNATURE = re.compile(
    rf"(template\s*<[^;{{}}]*>\s*)?(?:\b(?:static|extern\s*\"C\")\s+)*{BOUNDS}"
    rf"\b__global__\s+{BOUNDS}void\s+{BOUNDS}(\w+)\s*\(([^)]*)\)",
    re.DOTALL,
)
USUAL_BLOCK = 256
MOST_TRIED = 50
"""Kernels that are compiled in search of one that needs nothing else."""
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
DTYPES = {
    "float": "float32", "double": "float64", "int": "int32", "unsigned": "uint32", "unsigned int": "uint32",
    "long long": "int64", "unsigned long long": "uint64", "char": "int8", "unsigned char": "uint8",
    "int32_t": "int32", "uint32_t": "uint32", "int64_t": "int64", "uint64_t": "uint64", "size_t": "uint64",
}  # fmt: skip
"""What arguments of a kernel are in a test, by their C++ types."""
TAKEN = frozenset({"cuda_kernel", "gpu", "gpuperf", "launch", "n"})
"""Names that the test itself uses."""
SAMPLE_TEST = """\
def test_axpy(cuda_kernel, gpu, gpuperf):
    n = 1 << 24
    x, y = gpu.random(n, seed=1), gpu.zeros(n)
    launch = cuda_kernel("axpy.cu", "axpy").launch(grid=(n // 256,), block=(256,), args=(x, y, 2.0, n))
    gpuperf(launch, bytes=3 * x.nbytes, reset=lambda: y.fill(0), check=lambda: gpu.assert_equal(y, 2 * x))
"""
FOUND_TEST = '''\
"""Written for {kernel} of {source} by its signature: see to what its arguments are, and to grid and block."""


def test_{kernel}(cuda_kernel, gpu, gpuperf):
    n = 1 << 20
{arrays}
    launch = cuda_kernel({file}, "{kernel}").launch(grid=(n // {block},), block=({block},), args=({args}))
    gpuperf(launch)  # add check=lambda: ..., which compares the result: a wrong kernel may well be fast
'''
ATTRIBUTES = "baselines/**/*.cubin.z binary\n"
SETTINGS = ("pytest.toml", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Files by which pytest takes a folder for its root."""
INI = "[pytest]\ntestpaths = .\n"
CONSTRAINTS = "nvidia-cuda-nvrtc=={nvrtc}\n"
NO_KERNEL = """\
No .cu file here holds a kernel that can be tested as it stands: no template, with numbers and arrays as arguments, and
such that NVRTC compiles it without options. A sample takes its place. For your own: docs/how-to/other-compilers.md

"""
ELSEWHERE = """\
GitHub runs workflows at the top of a repository alone, which is {top}. Move the written one there, with a name of its
own, and add below its "static:":

    defaults: {{run: {{working-directory: {inside}}}}}

"""
NEXT = """\
Next:

    pytest --update-baselines      # records; without a GPU, the machine code alone
    pytest --gpuperf               # gates: green
    {git}git add . && git commit -m "Gate the first kernel"

In .github/workflows/gpuperf.yml put the account that has pytest-gpuperf in the place of OWNER.

Then change the kernel and run pytest --gpuperf again. docs/tutorial/first-regression.md tells more.
"""


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
    tried = map(compiled, itertools.islice(kernels_in(folder), MOST_TRIED))
    found = next(filter(None, tried), None)
    note = NO_KERNEL if found is None and _sources(folder) else ""
    files = _test_of(found) if found is not None else _sample(folder)
    if not any((folder / name).exists() for name in SETTINGS):
        files[folder / "pytest.ini"] = INI
    files[folder / ".github" / "workflows" / "gpuperf.yml"] = (FILES / "gpuperf.yml").read_text(encoding="utf-8")
    if nvrtc := _nvrtc_version():
        files[folder / "gpuperf-constraints.txt"] = CONSTRAINTS.format(nvrtc=nvrtc)
    for path, text in files.items():
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text.encode())
            write(f"written  {path.relative_to(folder)}\n")
        else:
            write(f"kept     {path.relative_to(folder)}\n")
    _attributes(folder / ".gitattributes", write)
    top = checkout_around(folder.resolve())
    if top not in (None, folder.resolve()):
        note += ELSEWHERE.format(top=top, inside=json.dumps(folder.resolve().relative_to(top).as_posix()))
    write(f"\n{note}{NEXT.format(git='' if top else 'git init && ')}")
    return 0


def kernels_in(folder: Path) -> Iterator[FoundKernel]:
    """Kernels whose arguments a test can make up, in the order of their files."""
    for path in _sources(folder):
        text = COMMENT.sub(" ", path.read_text(encoding="utf-8", errors="replace"))
        for template, name, parameters in SIGNATURE.findall(text):
            arguments = arguments_of(parameters)
            if arguments is not None and not template:
                yield FoundKernel(path, name, arguments)


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


def _sources(folder: Path) -> list[Path]:
    """CUDA sources below the folder, as many as are looked through."""

    def is_skipped(path: Path) -> bool:
        return any(part.startswith(".") or part in SKIPPED for part in path.relative_to(folder).parts[:-1])

    found = (path for path in sorted(folder.rglob("*.cu")) if path.is_file() and not is_skipped(path))
    return list(itertools.islice(found, MOST_FILES))


def arguments_of(parameters: str) -> tuple[tuple[str, str, bool], ...] | None:
    """Types and names of a kernel's parameters; None if one of them is no number and no array of numbers."""
    found = []
    for one in filter(None, (part.strip() for part in parameters.split(","))):
        words = re.sub(r"\b(const|__restrict__|restrict|volatile)\b", " ", one).replace("*", " * ").split()
        stars = words.count("*")
        kind, name = " ".join(word for word in words[:-1] if word != "*"), words[-1]
        if kind not in DTYPES or stars > 1 or not name.isidentifier():
            return None
        found.append((kind, name, bool(stars)))
    return tuple(found)


def _test_of(kernel: FoundKernel) -> dict[Path, str]:
    """The kernel's test, beside its source; arguments have their own names, where Python and the test leave these."""
    arrays, args = [], []
    for place, (kind, name, is_pointer) in enumerate(kernel.arguments):
        called = f"{name}_" if keyword.iskeyword(name) or name in TAKEN else name
        if is_pointer:
            arrays.append(f'    {called} = gpu.random(n, "{DTYPES[kind]}", seed={place})')
        args.append(called if is_pointer else "1.0" if kind in ("float", "double") else "n")
    file = json.dumps(kernel.source.name, ensure_ascii=False)
    text = FOUND_TEST.format(
        kernel=kernel.name, source=file[1:-1], file=file, arrays="\n".join(arrays), block=kernel.block,
        args=f"{args[0]}," if len(args) == 1 else ", ".join(args),
    )  # fmt: skip
    return {kernel.source.parent / f"test_{kernel.name}.py": text}


def _sample(folder: Path) -> dict[Path, str]:
    return {
        folder / "kernels" / "axpy.cu": (FILES / "axpy.cu").read_text(encoding="utf-8"),
        folder / "kernels" / "test_axpy.py": SAMPLE_TEST,
    }


def _nvrtc_version() -> str:
    for name in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""


def _attributes(path: Path, write: Callable[[str], object]) -> None:
    """Add the lines that baselines need; what is there stays, byte for byte."""
    before = path.read_bytes() if path.exists() else b""
    missing = [line for line in ATTRIBUTES.encode().splitlines() if line not in before.splitlines()]
    if not missing:
        write(f"kept     {path.name}\n")
        return
    joint = b"" if not before or before.endswith(b"\n") else b"\n"
    write_whole(path, before + joint + b"\n".join(missing) + b"\n")
    write(f"{'added to' if before else 'written '} {path.name}\n")
