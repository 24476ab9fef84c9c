"""What to do about a source that a compiler refuses: a table from the words of its log to a remedy that works."""

from __future__ import annotations

import re
from typing import NamedTuple

MISTAKE = re.compile(
    r"^(?P<file>[^\n]+?)(?:\((?P<line>\d+)\)|:(?P<other>\d+)(?::\d+)?): "
    r"(?:catastrophic |fatal )?error(?: #?[\w-]+)?: (?P<what>[^\n]*)",
    re.M,
)
"""Of NVRTC and nvcc; the second way is that of the host's compiler."""
NO_DEVICE_RUNTIME = (
    "kernels that launch kernels (dynamic parallelism) have to be linked with cudadevrt, which is not done here. "
    "Launch the inner kernel from the test, or give gpuperf a function that runs both"
)
DEVICE_RUNTIME = re.compile(r"cuda(?:LaunchDevice|GetParameterBuffer|DeviceSynchronize|StreamCreate)\w*|__cudaCDP2\w+")
_BY_NVCC = 'cuda_kernel(..., compiler="nvcc")'
_HOST_CODE = (
    r'identifier "(?:cu(?:da|blas|rand|fft|sparse|dnn|solver|ptxGet)?[A-Z]\w*|abort|atexit|getenv|system|usleep|sleep|'
    r"gettimeofday|s?rand|time|str(?:len|chr|str|tok|dup|n?cmp|n?cpy|n?cat|n?casecmp|to\w+)|pthread_\w+|stdin|sn?printf|"
    r'puts|putchar|f(?:open|close|read|write|flush)|s?scanf|ato[ifl]|qsort|calloc|realloc|time(?:_t|val|spec))" is'
    r'|namespace "std" has no member|name must be a namespace name|identifier "std" is undefined'
    r"|device-side kernel launch could not be processed|does not support exception handling"
    r"|explicitly marked as a __host__ function"
)
_MACRO = r"\b([A-Z][A-Z0-9_]{2,})\b"
_UNOPENED = r'(?:(?:cannot|could not) open source file "|fatal error: ){}(?:"|: No such file)'


class _Remedy(NamedTuple):
    """One row of the table."""

    pattern: str
    """Looked for in the whole log."""
    text: str
    """``{1}`` is the first group of the pattern; ``{place}`` is the file and line in which it was found."""
    compiler: str = ""
    """The compiler that it is for; empty for both."""


_SEARCHED = "{1} was not found in the source's folder, headers=, -I folders and the compiler's folders. "
_HEADERS = (
    (r"((?:ATen|c10|torch|pybind11)/\S*?|Python\.h)",
     "It is a header of PyTorch: headers=[*torch.utils.cpp_extension.include_paths(), sysconfig.get_path('include')], "
     f"which is for nvcc: {_BY_NVCC}."),
    (r"([^\s:\"]+)",
     "A header of yours: add its folder with headers=. One of a submodule: git submodule update --init. A CUDA header: "
     "pip install nvidia-cuda-runtime nvidia-cuda-cccl (nvidia-curand, nvidia-cublas, ...). One of another library: "
     "install it and add its folder, or write a header of that name with the declarations that the kernels use. "
     f"A header of the C++ library: the one under cuda/std/, or compile with nvcc: {_BY_NVCC}."),
)  # fmt: skip
_GUARD = (
    "{place} is host code, which NVRTC does not compile. Remove it; or put it, or the #include that\n"
    "leads to it, between #ifndef __CUDACC_RTC__ and #endif; or compile the whole file with an installed\n"
    f"nvcc: {_BY_NVCC}."
)
_TABLE = (
    *(_Remedy(_UNOPENED.format(pattern), _SEARCHED + text) for pattern, text in _HEADERS),
    _Remedy(r'headers are incompatible|/cuda/std/\S+: error: identifier "__nv_|static_assert\((?:CUB_MAJOR_|\(\d+ /)',
            "Headers of two CUDA versions are mixed: leave CUDA's out of headers= and -I; the compiler's are found."),
    _Remedy(r"unrecognized option -+i(?:system|dirafter)", "Name a folder of headers by -I or headers=[...].", "nvrtc"),
    _Remedy(r"unrecognized option", f"An option of nvcc: leave it out, or compile with nvcc: {_BY_NVCC}.", "nvrtc"),
    _Remedy(r"version https://git-lfs", "The file is a pointer of Git LFS: git lfs pull."),
    _Remedy(r"ptxas fatal +: .*,-", 'Name each option: "--ptxas-options=-v", "--ptxas-options=-O2".', "nvrtc"),
    _Remedy(r"requires at least C\+\+ ?17", "Leave out -std=, or give -std=c++17."),
    _Remedy(r'texture(?:" is undefined| is not a template)',
            "CUDA 12 dropped texture references: take a cudaTextureObject_t."),
    _Remedy(r'identifier "__(?:shfl|any|all|ballot)\w*" is undefined|Instruction \S+ without \S*\.sync',
            "A function of a warp names its lanes: __shfl_xor_sync(0xffffffff, ...), __ballot_sync(0xffffffff, ...)."),
    _Remedy(rf"/(?:cub|thrust)/\S+: (?:catastrophic )?error: (?:{_HOST_CODE}|#error directive: .* with NVRTC)",
            "A header of CUB or Thrust that is for the host too: include one for the GPU alone, as\n"
            f"<cub/block/block_reduce.cuh>, or compile with nvcc: {_BY_NVCC}.", "nvrtc"),
    _Remedy(r'\A[^\n]*namespace "std" has no member "(\w+)"',
            f"If a kernel uses std::{{1}}, #include its header. If not: {_GUARD}", "nvrtc"),
    _Remedy(_HOST_CODE, _GUARD, "nvrtc"),
    _Remedy(rf"#error directive: \D*?{_MACRO}", 'The build system gives a macro: options=["-D{1}=..."].'),
    _Remedy(rf'identifier "{_MACRO}" is undefined', 'If it is a macro: options=["-D{1}=..."], or its header.'),
    *(_Remedy(rf"'({word})[\w.: ]*' not supported on \.target '(sm_\d+)\w?'",
              f'Only the architecture-specific target has it: arch="{arch}".')
      for word, arch in (("wgmma", "sm_90a"), ("tcgen05", "sm_100a"), (r"\.kind::|mma with ", "sm_120a"))),
    _Remedy(r"' not supported on \.target 'sm_\d+\w?'",
            'Only architecture-specific targets have it: try arch="sm_90a", "sm_100a" or "sm_120a".'),
    _Remedy(rf"requires separate compilation mode|Unresolved extern function '(?:{DEVICE_RUNTIME.pattern})'",
            f"{NO_DEVICE_RUNTIME[0].upper()}{NO_DEVICE_RUNTIME[1:]}."),
    _Remedy(r"Unresolved extern function '(\w+)'",
            "{1}: it is declared and not defined. Include the source that defines it, or link both:\n"
            "nvcc -arch=ARCH -rdc=true -dlink -cubin ONE.cu OTHER.cu -o linked.cubin, for cuda_kernel.from_cubin."),
    _Remedy("'setmaxnreg' ignored; unable", "Name the blocks too: __launch_bounds__(threads, 1)."),
)  # fmt: skip
"""The first row that fits is the remedy."""


def remedy(log: str, compiler: str) -> str:
    """What to do about a source that the ``compiler`` refuses; empty if its own words are all."""
    for row in _TABLE:
        found = re.search(row.pattern, log) if row.compiler in ("", compiler) else None
        if found is not None:
            mistake = MISTAKE.match(log, log.rfind("\n", 0, found.start()) + 1)
            place = f"Line {mistake['line'] or mistake['other']} of {mistake['file']}" if mistake is not None else "It"
            return row.text.format("", *(group or "" for group in found.groups()), place=place)
    return ""
