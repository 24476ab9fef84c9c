"""``gpuperf init``: what a repository needs for its first gated kernel.  Nothing is overwritten."""

from __future__ import annotations

import argparse
import itertools
import json
import keyword
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.cli.pytest_settings import has_pytest_settings, narrows_collection
from pytest_gpuperf.compile.compile_errors import CompileProblem, ToolchainMissing
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.context.repository import checkout_around
from pytest_gpuperf.context.worker import FALLBACK_ARCHS

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
MOST_THREADS = re.compile(r"__launch_bounds__\s*\(\s*([1-9]\d*)\s*[,)]")
USUAL_BLOCK = 256
MOST_TRIED = 50
"""Kernels that are compiled in search of one that needs nothing else."""
HOST = re.compile(r"<<<|\bcuda[A-Z]\w*\s*\(|\bmain\s*\(|\bstd::(?:vector|string)\b")
"""Of a file of a whole program, which NVRTC does not compile."""
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
DTYPES = {
    "float": "float32", "double": "float64", "int": "int32", "unsigned": "uint32", "unsigned int": "uint32",
    "long long": "int64", "unsigned long long": "uint64", "char": "int8", "unsigned char": "uint8",
    "int32_t": "int32", "uint32_t": "uint32", "int64_t": "int64", "uint64_t": "uint64", "size_t": "uint64",
}  # fmt: skip
"""What arguments of a kernel are in a test, by their C++ types."""
TAKEN = frozenset({"cuda_kernel", "gpu", "gpuperf", "launch", "n"})
"""Names that the test itself uses."""
SAMPLE = """\
// y += a * x
extern "C" __global__ void axpy(const float* x, float* y, float a, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""
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
ATTRIBUTES = "baselines/**/*.cubin.z binary\nbaselines/** linguist-generated\n"
INI = "[pytest]\ntestpaths = .\n"
CONSTRAINTS = "nvidia-cuda-nvrtc=={nvrtc}\n"
WORKFLOW = """\
name: kernels
on:
  push: {branches: [main]}
  pull_request:
permissions: {contents: read}
jobs:
  static:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    steps:
      - uses: actions/checkout@v4
        with: {fetch-depth: 0, persist-credentials: false}
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: pip install -c gpuperf-constraints.txt 'pytest-gpuperf[static]'
      - run: pytest --gpuperf --gpuperf-report=github
"""
NO_KERNEL = """\
No .cu file here holds a kernel that can be tested as it stands: no template, with numbers and arrays as arguments,
without code of the host beside it, and such that NVRTC compiles it without options. A sample takes its place. For your
own: gpuperf docs other-compilers

"""
ELSEWHERE = """\
GitHub runs workflows at the top of a repository alone, which is {top}. Move the written one there, with a name of its
own, and add below its "static:":

    defaults: {{run: {{working-directory: {inside}}}}}

"""
NARROWED = """\
Settings of pytest are there, and they say where tests lie or what their files are called. If "pytest" alone does not
collect {test}, add it to them, or name it in the commands.

"""
NEXT = """\
Next:

    pytest --update-baselines      # records; without a GPU, the machine code alone
    pytest --gpuperf               # gates: green
    {git}git add . && git commit -m "Gate the first kernel"

Then change the kernel and run pytest --gpuperf again. gpuperf docs first-regression tells more.
"""


class FoundKernel(NamedTuple):
    source: Path
    name: str
    arguments: tuple[tuple[str, str, bool], ...]
    """Type, name, and whether it is a pointer."""
    block: int
    """Threads that a block of the test has: as many as the launch bounds allow, where these are a number."""


PROBLEMS = (OSError,)
"""What can keep the command from its work."""


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    return run(parsed.folder, write=write)


def run(folder: Path, *, write: Callable[[str], object]) -> int:
    """Write what is not there yet below ``folder``, and say the next command; returns the exit status, 0.

    Raises ``OSError``.
    """
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is no folder: name the one of your repository")
    tried = map(compiled, itertools.islice(kernels_in(folder), MOST_TRIED))
    found = next(filter(None, tried), None)
    note = NO_KERNEL if found is None and _sources(folder) else ""
    files = _test_of(found, folder) if found is not None else _sample(folder)
    if narrows_collection(folder):
        note += NARROWED.format(test=next(path for path in files if path.suffix == ".py").relative_to(folder))
    if not has_pytest_settings(folder):
        files[folder / "pytest.ini"] = INI
    files[folder / ".github" / "workflows" / "gpuperf.yml"] = WORKFLOW
    if nvrtc := _nvrtc_version():
        files[folder / "gpuperf-constraints.txt"] = CONSTRAINTS.format(nvrtc=nvrtc)
    for path, text in files.items():
        if path.exists():
            write(f"kept     {path.relative_to(folder)}\n")
            continue
        _put(path, text.encode())
        write(f"written  {path.relative_to(folder)}\n")
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
        for declared in [] if HOST.search(text) else SIGNATURE.finditer(text):
            template, name, parameters = declared.groups()
            arguments = arguments_of(parameters)
            if arguments is not None and not template:
                allowed = map(int, MOST_THREADS.findall(declared.group()))
                yield FoundKernel(path, name, arguments, min([USUAL_BLOCK, *allowed]))


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
    those = (path for path in sorted(folder.rglob("*.cu")) if path.is_file())
    found = (path for path in those if not _skipped(path.relative_to(folder)))
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


def _skipped(path: Path) -> bool:
    return any(part.startswith(".") or part in SKIPPED for part in path.parts[:-1])


def _test_of(kernel: FoundKernel, folder: Path) -> dict[Path, str]:
    called = _names_in_python(name for _, name, _ in kernel.arguments)
    arrays = [
        f'    {called[name]} = gpu.random(n, "{DTYPES[kind]}", seed={place})'
        for place, (kind, name, pointer) in enumerate(kernel.arguments)
        if pointer
    ]
    numbers = {"float": "1.0", "double": "1.0"}
    args = [called[name] if pointer else numbers.get(kind, "n") for kind, name, pointer in kernel.arguments]
    given = f"{args[0]}," if len(args) == 1 else ", ".join(args)
    file = json.dumps(kernel.source.name, ensure_ascii=False)
    text = FOUND_TEST.format(
        kernel=kernel.name, source=file[1:-1], file=file, arrays="\n".join(arrays), args=given, block=kernel.block
    )
    return {_test_file(kernel.source.parent, kernel.name, folder): text}


def _test_file(place: Path, kernel: str, folder: Path) -> Path:
    """Where the test goes.  Of two files of one name pytest collects one alone, unless they lie in packages."""
    path = place / f"test_{kernel}.py"
    others = (other for other in folder.rglob(path.name) if other != path)
    return path if next(others, None) is None else path.with_stem(f"test_{kernel}_perf")


def _names_in_python(names: Iterable[str]) -> dict[str, str]:
    """What the test calls each parameter: its own name, with a ``_`` behind it where Python or the test uses that."""
    called = {name: name for name in names}
    for name in called:
        while (
            keyword.iskeyword(called[name])
            or called[name] in TAKEN
            or (called[name] != name and called[name] in called)
        ):
            called[name] += "_"
    return called


def _sample(folder: Path) -> dict[Path, str]:
    kernels = folder / "kernels"
    return {kernels / "axpy.cu": SAMPLE, _test_file(kernels, "axpy", folder): SAMPLE_TEST}


def _nvrtc_version() -> str:
    for name in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""


def _put(path: Path, content: bytes) -> None:
    """Write a file, or say of this one, and of none that stands in for it meanwhile, that it cannot be.

    Raises ``OSError``.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as problem:
        raise OSError(
            f"{path} cannot be written ({problem.strerror}): see to its folder, and run it again"
        ) from problem


def _attributes(path: Path, write: Callable[[str], object]) -> None:
    """Add the lines that baselines need; what is there stays, byte for byte."""
    before = path.read_bytes() if path.exists() else b""
    missing = [line for line in ATTRIBUTES.encode().splitlines() if line not in before.splitlines()]
    if not missing:
        write(f"kept     {path.name}\n")
        return
    joint = b"" if not before or before.endswith(b"\n") else b"\n"
    _put(path, before + joint + b"\n".join(missing) + b"\n")
    write(f"{'added to' if before else 'written '} {path.name}\n")
