"""What to do about a source that a compiler refuses, by the words of its log."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_HOST_WORDS = re.compile(
    r'identifier "(?:cu(?:da|blas|rand|fft|sparse|dnn|solver|ptxGet)?[A-Z]\w*|exit|abort|atexit|getenv|system|usleep|'
    r"sleep|gettimeofday|rand|srand|time|str(?:len|chr|str|tok|dup|n?cmp|n?cpy|n?cat|n?casecmp)|pthread_\w+|stdin|stdout|stderr|[fs]printf|snprintf|puts|putchar|fopen|fclose|fread|fwrite|"
    r'fflush|scanf|sscanf|ato[ifl]|strto\w+|qsort|calloc|realloc|FILE|time_t|timeval|timespec)" is undefined'
    r'|namespace "std" has no member|name must be a namespace name|identifier "std" is undefined'
    r"|device-side kernel launch could not be processed|does not support exception handling"
    r"|explicitly marked as a __host__ function"
)

_DEVICE_RUNTIME = re.compile(r"cuda(?:LaunchDevice|GetParameterBuffer|DeviceSynchronize|StreamCreate)\w*|__cudaCDP2\w+")
_UNRESOLVED = re.compile(r"Unresolved extern function '(\w+)'")
_BUILTIN_HEADER = "__nv_nvrtc_builtin_header.h"
"""That NVRTC reads before each source, with its types and functions by short names."""
_DEFINE = "--define-macro="
_SEPARATE = "requires separate compilation mode"
_LAUNCH = "device-side kernel launch could not be processed"
_UNDEFINED = re.compile(r'identifier "(\w+)" is undefined')
_OF_UNKNOWN_TYPES = re.compile(r'does not apply here|incomplete type "void"')
"""What a compiler says of a function before it says that it knows the type of none of its parameters."""
_STANDARD = re.compile(r"\bC\+\+(\d\d) or (?:later|newer|greater|above)|(?:require|need)s? (?:at least )?C\+\+(\d\d)")
_WORDS_OF_CPP20 = frozenset({"concept", "char8_t"})
"""Keywords that a compiler takes for names that nothing declares up to C++17, its default."""
_OTHER_RUNTIME = re.compile(
    r'identifier "cuda[A-Z]\w*" is undefined|class "cuda\w+" has no member|(?:from "int" to|type) "cudaMemLocation"'
)
_UNNAMED_THREADS = re.compile(
    r'identifier "(__(?:shfl\w*|ballot|any|all))" is undefined|Instruction .(vote|shfl). without ..sync.'
)
_FLAG = re.compile(r"(--[a-z][\w-]+)'?(?: nvcc flag| can be used to allow)")
UNOPENED = re.compile(r'(?:cannot|could not) open source file "([^"]+)"|fatal error: ([^\s:]+): No such file')
"""One of the groups is the name of a header that no folder holds, in the log of either compiler."""

_LIBRARY = re.compile(r"(cublas|cufft|curand|cusparse|cusolver|cuda_profiler|npp|nvjpeg|nvtx)\w*(?:\.h|/\S*)")
_PACKAGES = {"cuda_profiler": "nvidia-cuda-profiler-api"}
_TEXTURE = "texture is not a template"
_NO_TEXTURE = (
    "Texture references went with CUDA 12. Pass a texture object (cudaTextureObject_t) to the kernel, or an array."
)
_GONE_OF_CUB = re.compile(r'namespace "cub(?:::\w+)?" has no member "(\w+)"')
_IN_PLACE_OF = {
    "Max": "cuda::maximum", "Min": "cuda::minimum", "Sum": "cuda::std::plus", "Difference": "cuda::std::minus",
    "Division": "cuda::std::divides", "Equality": "cuda::std::equal_to", "Inequality": "cuda::std::not_equal_to",
}  # fmt: skip
"""What CUB had of its own before CCCL 3.0 (CCCL's migration guide from 2.x to 3.0)."""
_TORCH = re.compile(r"(?:ATen|c10|torch|pybind11)/\S*|Python\.h")

NO_DEVICE_RUNTIME = (
    "kernels that launch kernels (dynamic parallelism) have to be linked with cudadevrt, which is not done here. "
    "Launch the inner kernel from the test, or give gpuperf a function that runs both"
)
_BY_NVCC = 'cuda_kernel(..., compiler="nvcc")'


def needs_device_runtime(symbol: str) -> bool:
    """Whether a function is one of CUDA's runtime on the device, by which kernels launch kernels."""
    return _DEVICE_RUNTIME.fullmatch(symbol) is not None


def assembler_remedy(log: str) -> str:
    """What to do about what only the assembler or the linker refuses, by the ``log``; empty if its words are all."""
    return _unlinked_remedy(log) or _unnamed_threads_remedy(log)


def _unlinked_remedy(log: str) -> str:
    """What to do about code that lacks a function at link time, by the compiler's ``log``; empty if it lacks none."""
    lacking = _UNRESOLVED.findall(log)
    if _SEPARATE in log or any(map(needs_device_runtime, lacking)):
        return f"{NO_DEVICE_RUNTIME[0].upper()}{NO_DEVICE_RUNTIME[1:]}."
    if lacking:
        return (
            f"{', '.join(lacking)}: declared and nowhere defined. Include the source that defines it, or link both:\n"
            "nvcc -arch=ARCH -rdc=true -dlink -cubin ONE.cu OTHER.cu -o linked.cubin, for cuda_kernel.from_cubin."
        )
    return ""


class Mistake(NamedTuple):
    """What a compiler refuses first."""

    file: str
    line: int
    what: str
    """In the compiler's words."""
    own: bool
    """It is in the source itself, not in a header."""
    of_cuda: bool = False
    """It is in a header of CUDA, which is not the user's to change."""


def expression_hint(what: str) -> str:
    """What to do about a name expression of which a compiler says ``what``."""
    return (
        f"the compiler says of the expression: {what}. It is C++ as at the end of the file: "
        "namespaces and all arguments that have no default, as in ns::copy<float, 4>"
    )


def nvrtc_remedy(mistake: Mistake, log: str, whole: bool) -> str:
    """What to do about what NVRTC refuses; ``whole`` if the source includes headers that only the host has use of."""
    unopened = UNOPENED.search(log)
    if unopened is not None:
        name = unopened[1] or unopened[2]
        standard = (
            " A header of the C++ standard library: NVRTC has none, use the one under cuda/std/, "
            f"or compile by nvcc: {_BY_NVCC}."
        )
        return (
            f"{name} was searched in the source's own folder, headers=, -I folders and the installed CUDA headers. "
            f"{_owner(name, standard)}"
        )
    if _HOST_WORDS.search(mistake.what) is not None:
        return _cut_or_nvcc(mistake, sure=True)
    known = _gone_remedy(mistake.what) or _standard_remedy(mistake.what)
    if known:
        return known
    maybe = _cut_or_nvcc(mistake, sure=False) if whole or _HOST_WORDS.search(log) is not None else ""
    return "\n".join(part for part in (_undefined_remedy(mistake.what, log), maybe) if part)


def macro_remedy(mistake: Mistake, quoted: str, options: Iterable[str]) -> str:
    """What to do about a macro of the ``options`` in the ``quoted`` line of NVRTC's own header; empty without one."""
    defined = {option.partition("=")[2].partition("=")[0] for option in options if option.startswith(_DEFINE)}
    names = sorted(defined & set(re.findall(r"\w+", quoted)))
    if mistake.file != _BUILTIN_HEADER or not names:
        return ""
    one = "is a macro" if len(names) == 1 else "are macros"
    return f"{', '.join(names)} {one} of options=, and a name in {mistake.file} too: call the macro otherwise."


def nvcc_remedy(mistake: Mistake, log: str) -> str:
    """What to do about what nvcc refuses; empty if its own words are all there is."""
    unopened = UNOPENED.search(log)
    if unopened is not None:
        name = unopened[1] or unopened[2]
        return f"{name} was searched in the source's own folder, headers=, -I folders and nvcc's own. {_owner(name)}"
    known = _gone_remedy(mistake.what) or _standard_remedy(mistake.what)
    if known:
        return known
    if _OTHER_RUNTIME.search(mistake.what) is not None:
        return (
            "nvcc's CUDA runtime does not have that: it is of another version, or of a header that is not included. "
            "Change the line,\nor guard code of the host by #ifndef __CUDACC_RTC__ and #endif and leave compiler= out: "
            "NVRTC compiles kernels alone."
        )
    flag = _FLAG.search(mistake.what)
    if flag is not None:
        return f'Give nvcc that flag: cuda_kernel(..., options=["{flag[1]}"], compiler="nvcc").'
    in_header = (
        ""
        if mistake.own
        else (
            f"If the kernels take little of {mistake.file}: write a header of that name that declares this,\n"
            "in a folder that headers= names before the other one."
        )
    )
    return _unlinked_remedy(log) or _undefined_remedy(mistake.what, log) or in_header


def _standard_remedy(what: str) -> str:
    """What to do about a header that asks for a later C++; empty if it asks for none."""
    asked = _STANDARD.search(what)
    return "" if asked is None else f'Compile as that: options=["-std=c++{asked[1] or asked[2]}"].'


def _gone_remedy(what: str) -> str:
    """What to do about what older versions of CUDA had; empty for anything else."""
    if _TEXTURE in what:
        return _NO_TEXTURE
    gone = _GONE_OF_CUB.match(what)
    if gone is not None and gone[1] in _IN_PLACE_OF:
        new = _IN_PLACE_OF[gone[1]]
        header = "cuda/std/functional" if new.startswith("cuda::std") else "cuda/functional"
        return f"It went with version 3 of CCCL, which CUB is part of: take {new}<>{{}} of <{header}>."
    return _unnamed_threads_remedy(what)


def _unnamed_threads_remedy(log: str) -> str:
    """What to do about an exchange within a warp that does not say between which threads; empty without one."""
    unnamed = _UNNAMED_THREADS.search(log)
    if unnamed is None:
        return ""
    new = f"{unnamed[1]}_sync(0xffffffff, ...)" if unnamed[1] else f"{unnamed[2]}.sync, or __shfl_sync and its like,"
    return f"It went with sm_70, where threads of a warp run by themselves: {new} names those that take part."


def _undefined_remedy(what: str, log: str) -> str:
    """What to do about a name that nothing declares: the file may be part of another one, or want its build's flags."""
    undefined = _UNDEFINED.search(log if _OF_UNKNOWN_TYPES.search(what) is not None else what)
    if undefined is None:
        return ""
    name = undefined[1]
    if name in _WORDS_OF_CPP20:
        return f'{name} is a word of C++20: options=["-std=c++20"].'
    return (
        f"If {name} is of a file that includes this one: compile that one, or have its declaration read first by\n"
        f'options=["-include=FILE"]. If it is a macro that the build gives: options=["-D{name}=VALUE"].\n'
        "If an #if leaves its declaration out: -D of the macro that this asks for."
    )


def _owner(name: str, otherwise: str = "") -> str:
    """Where a header of that name is to be had; ``otherwise`` is added where only its user can tell."""
    library = _LIBRARY.fullmatch(name)
    if library is not None:
        package = _PACKAGES.get(library[1], f"nvidia-{library[1]}")
        return f"It is of a library of CUDA: pip install {package}, or install a CUDA toolkit."
    if _TORCH.fullmatch(name):
        return (
            "It is of PyTorch: headers=[*torch.utils.cpp_extension.include_paths(), sysconfig.get_path('include')], "
            f"which is for nvcc: {_BY_NVCC}."
        )
    return (
        "A header of yours: add its folder with headers=. A CUDA header: pip install nvidia-cuda-runtime "
        "nvidia-cuda-cccl, or install a CUDA toolkit. One of another library: install that and add its folder, "
        f"or write one of that name that declares what the kernels take of it.{otherwise}"
    )


def _cut_or_nvcc(mistake: Mistake, sure: bool) -> str:
    """Both ways out for a line that is code of the host, if that is ``sure``."""
    line = f"{'Line' if sure else 'Perhaps line'} {mistake.line}"
    if mistake.own:
        cut = f"Cut such code out of {mistake.file},\nor guard it from its first line to its last by "
    elif mistake.of_cuda:
        cut = f"Guard the #include in your code\nthat leads to {mistake.file} by "
    else:
        cut = f"In {mistake.file} guard such code,\nor in yours the #include that leads to it, by "
    launches = f"\nIf it is device code: {NO_DEVICE_RUNTIME}." if mistake.what.startswith(_LAUNCH) else ""
    return (
        f"{line} is code of the host, which NVRTC does not compile. {cut}#ifndef __CUDACC_RTC__ and #endif,\n"
        f"or have the whole file compiled by an installed nvcc: {_BY_NVCC}.{launches}"
    )
