"""What to do about a source that a compiler refuses: a table from the words of its log to a remedy that works."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

NO_DEVICE_RUNTIME = (
    "kernels that launch kernels (dynamic parallelism) have to be linked with cudadevrt, which is not done here. "
    "Launch the inner kernel from the test, or give gpuperf a function that runs both"
)
_DEVICE_RUNTIME = r"cuda(?:LaunchDevice|GetParameterBuffer|DeviceSynchronize|StreamCreate)\w*|__cudaCDP2\w+"
_BY_NVCC = 'cuda_kernel(..., compiler="nvcc")'
_BUILTIN_HEADER = "__nv_nvrtc_builtin_header.h"
"""That NVRTC reads before each source, with its types and functions by short names."""
_DEFINE = re.compile(r"(?:-D|--define-macro)\s*=?\s*(\w*)")
_HOST_WORDS = (
    r'identifier "(?:cu(?:da|blas|rand|fft|sparse|dnn|solver|ptxGet)?[A-Z]\w*|exit|abort|atexit|getenv|system|usleep|'
    r"sleep|gettimeofday|rand|srand|time|str(?:len|chr|str|tok|dup|n?cmp|n?cpy|n?cat|n?casecmp)|pthread_\w+|"
    r"stdin|stdout|stderr|[fs]printf|snprintf|puts|putchar|fopen|fclose|fread|fwrite|"
    r'fflush|scanf|sscanf|ato[ifl]|strto\w+|qsort|calloc|realloc|FILE|time_t|timeval|timespec)" is undefined'
    r'|namespace "std" has no member|name must be a namespace name|identifier "std" is undefined'
    r"|device-side kernel launch could not be processed|does not support exception handling"
    r"|explicitly marked as a __host__ function"
)
_UNOPENED = r'(?:(?:cannot|could not) open source file "|fatal error: ){}(?:"|: No such file)'


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


class _Remedy(NamedTuple):
    """One row of the table."""

    pattern: str
    text: str
    """``{1}`` is the first group of the pattern; ``{file}``, ``{line}`` and ``{guard}`` are those of the mistake."""
    compiler: str = ""
    """The compiler that it is for; empty for both."""
    in_log: bool = False
    """The pattern is looked for in the whole log, and not in the first mistake alone."""


_SEARCHED = "{1} was searched in the source's own folder, headers=, -I folders and "
_PLACES = {"nvrtc": "the installed CUDA headers. ", "nvcc": "nvcc's own. "}
_HEADERS = (
    (r"((cublas|cufft|curand|cusparse|cusolver|npp|nvjpeg|nvtx)\w*(?:\.h|/\S*?))", {
        "nvrtc": "It is of a library of CUDA: pip install nvidia-{2}, or install a CUDA toolkit.",
        "nvcc": "It is of a library of CUDA: install it in nvcc's own toolkit, or pip install nvidia-{2} and name the "
                "folder of that header: headers=[...].",
    }),
    (r"(cuda_profiler_api\.h)", "It is of CUDA: pip install nvidia-cuda-profiler-api, or install a CUDA toolkit."),
    (r"((?:ATen|c10|torch|pybind11)/\S*?|Python\.h)",
     "It is of PyTorch: headers=[*torch.utils.cpp_extension.include_paths(), sysconfig.get_path('include')], "
     f"which is for nvcc: {_BY_NVCC}."),
    (r"([^\s:\"]+)", {
        "nvrtc": "{other} A header of the C++ standard library: NVRTC has none, use the one under cuda/std/, "
                 f"or compile by nvcc: {_BY_NVCC}.",
        "nvcc": "{other}",
    }),
)  # fmt: skip
_OTHER_HEADER = (
    "A header of yours: add its folder with headers=. A CUDA header: pip install nvidia-cuda-runtime "
    "nvidia-cuda-cccl, or install a CUDA toolkit. One of another library: install that and add its folder, "
    "or write one of that name that declares what the kernels take of it."
)
_GONE_OF_CUB = {
    "Max": "cuda::maximum", "Min": "cuda::minimum", "Sum": "cuda::std::plus", "Difference": "cuda::std::minus",
    "Division": "cuda::std::divides", "Equality": "cuda::std::equal_to", "Inequality": "cuda::std::not_equal_to",
}  # fmt: skip
"""What CUB had of its own before CCCL 3.0 (CCCL's migration guide from 2.x to 3.0)."""
_UNDEFINED = (
    "If {1} is of a file that includes this one: compile that one, or have its declaration read first by\n"
    'options=["-include=FILE"]. If it is a macro that the build gives: options=["-D{1}=VALUE"].\n'
    "If an #if leaves its declaration out: -D of the macro that this asks for."
)
_ONE_WORD = r'identifier "(\w+)" is undefined'
_NO_TYPE = r'(?:does not apply here|incomplete type "void")'
"""What a compiler says of a function before it says that it knows the type of none of its parameters."""
_UNLINKED = (
    "{1}: declared and nowhere defined. Include the source that defines it, or link both:\n"
    "nvcc -arch=ARCH -rdc=true -dlink -cubin ONE.cu OTHER.cu -o linked.cubin, for cuda_kernel.from_cubin."
)
_GUARD = (
    "code of the host, which NVRTC does not compile. {guard}#ifndef __CUDACC_RTC__ and #endif,\n"
    f"or have the whole file compiled by an installed nvcc: {_BY_NVCC}."
)
_THREADS = "It went with sm_70, where threads of a warp run by themselves: {} names those that take part."

_TABLE = (
    *(_Remedy(_UNOPENED.format(pattern), _SEARCHED + _PLACES[one] + (text if isinstance(text, str) else text[one]), one,
              in_log=True) for pattern, text in _HEADERS for one in _PLACES),
    _Remedy(r"unrecognized option (?:-isystem|--system-include)", "Give that folder as -I.", "nvrtc", in_log=True),
    _Remedy(r"unrecognized option", f"If it is one of nvcc: leave it out, or compile by that: {_BY_NVCC}.", "nvrtc",
            in_log=True),
    _Remedy(r"thrust/complex\.h\(\d+\): error", "NVRTC does not compile thrust::complex: take cuda::std::complex of "
            "<cuda/std/complex>.", "nvrtc", in_log=True),
    _Remedy(r"device-side kernel launch could not be processed",
            f"Line {{line}} is {_GUARD}\nIf it is device code: {NO_DEVICE_RUNTIME}.", "nvrtc"),
    _Remedy(_HOST_WORDS, f"Line {{line}} is {_GUARD}", "nvrtc"),
    _Remedy("texture is not a template", "Texture references went with CUDA 12. Pass a texture object "
            "(cudaTextureObject_t) to the kernel, or an array."),
    *(_Remedy(rf'namespace "cub(?:::\w+)?" has no member "{old}"', "It went with version 3 of CCCL, which CUB is part "
              f"of: take {new}<>{{{{}}}} of <cuda/{'std/' if '::std::' in new else ''}functional>.")
      for old, new in _GONE_OF_CUB.items()),
    _Remedy(r'identifier "(__(?:shfl\w*|ballot|any|all))" is undefined',
            _THREADS.format("{1}_sync(0xffffffff, ...)")),
    _Remedy(r"Instruction .(vote|shfl). without ..sync.", _THREADS.format("{1}.sync, or __shfl_sync and its like,"),
            in_log=True),
    *(_Remedy(rf"'({word})[\w.]*' not supported on \.target '(sm_\d+)'",
              f'It is of an architecture with all its features alone: arch="{arch}".', in_log=True)
      for word, arch in (("wgmma", "sm_90a"), ("tcgen05", "sm_100a"), (r"\.kind::f8f6f4", "sm_120a"),
                         ("setmaxnreg", "{2}a"))),
    *(_Remedy(pattern, 'Compile as that: options=["-std=c++{1}"].') for pattern in (
        r"\bC\+\+(\d\d) or (?:later|newer|greater|above)", r"(?:require|need)s? (?:at least )?C\+\+(\d\d)")),
    _Remedy(r'#error directive: "?(\w+) (?:is (?:undefined|not defined)|must be defined)',
            'It is a macro that the build gives: options=["-D{1}=VALUE"].'),
    _Remedy(r'identifier "(concept|char8_t)" is undefined', '{1} is a word of C++20: options=["-std=c++20"].'),
    _Remedy(r'identifier "cuda[A-Z]\w*" is undefined|class "cuda\w+" has no member'
            r'|(?:from "int" to|type) "cudaMemLocation"',
            "nvcc's CUDA runtime does not have that: it is of another version, or of a header that is not included. "
            "Change the line,\nor guard code of the host by #ifndef __CUDACC_RTC__ and #endif and leave compiler= out: "
            "NVRTC compiles kernels alone.", "nvcc"),
    _Remedy(r"(--[a-z][\w-]+)'?(?: nvcc flag| can be used to allow)",
            'Give nvcc that flag: cuda_kernel(..., options=["{1}"], compiler="nvcc").', "nvcc"),
    _Remedy(rf"requires separate compilation mode|Unresolved extern function '(?:{_DEVICE_RUNTIME})'",
            f"{NO_DEVICE_RUNTIME[0].upper()}{NO_DEVICE_RUNTIME[1:]}.", in_log=True),
    _Remedy(r"Unresolved extern function '(\w+)'", _UNLINKED, in_log=True),
    _Remedy(_ONE_WORD, _UNDEFINED),
    _Remedy(rf"(?s:{_NO_TYPE}.*?{_ONE_WORD})", _UNDEFINED, in_log=True),
)  # fmt: skip
"""The first row that fits is the remedy."""


def remedy(mistake: Mistake | None, log: str, compiler: str, for_host: bool = False) -> str:
    """What to do about a source that the ``compiler`` refuses; empty if its own words are all there is.

    ``mistake`` is None where only the assembler or the linker refuses it; ``for_host`` if the source includes
    headers of the host alone.
    """
    facts = {"other": _OTHER_HEADER}
    if mistake is not None:
        facts |= {"file": mistake.file, "line": str(mistake.line), "guard": _guard(mistake)}
    advice = ""
    for row in _TABLE:
        if row.compiler not in ("", compiler) or (mistake is None and not row.in_log):
            continue
        found = re.search(row.pattern, log if row.in_log or mistake is None else mistake.what)
        if found is not None:
            advice = row.text.format("", *(group or "" for group in found.groups()), **facts)
            if row.text is not _UNDEFINED:
                return advice
            break
    if mistake is None:
        return advice
    if compiler == "nvcc":
        own_header = (
            f"If the kernels take little of {mistake.file}: write a header of that name that declares this,\n"
            "in a folder that headers= names before the other one."
        )
        return advice or ("" if mistake.own else own_header)
    perhaps = for_host or re.search(_HOST_WORDS, log) is not None
    doubt = f"Perhaps line {{line}} is {_GUARD}".format(**facts) if perhaps else ""
    return "\n".join(part for part in (advice, doubt) if part)


def _guard(mistake: Mistake) -> str:
    """Where to guard a line that is code of the host."""
    if mistake.own:
        return f"Cut such code out of {mistake.file},\nor guard it from its first line to its last by "
    if mistake.of_cuda:
        return f"Guard the #include in your code\nthat leads to {mistake.file} by "
    return f"In {mistake.file} guard such code,\nor in yours the #include that leads to it, by "


def needs_device_runtime(symbol: str) -> bool:
    """Whether a function is one of CUDA's runtime on the device, by which kernels launch kernels."""
    return re.fullmatch(_DEVICE_RUNTIME, symbol) is not None


def expression_hint(what: str) -> str:
    """What to do about a name expression of which a compiler says ``what``."""
    return (
        f"the compiler says of the expression: {what}. It is C++ as at the end of the file: "
        "namespaces and all arguments that have no default, as in ns::copy<float, 4>"
    )


def macro_remedy(mistake: Mistake, quoted: str, options: Iterable[str]) -> str:
    """What to do about a macro of the ``options`` in the ``quoted`` line of NVRTC's own header; empty without one."""
    defined = {found[1] for found in map(_DEFINE.match, options) if found is not None}
    names = sorted(defined & set(re.findall(r"\w+", quoted)))
    if mistake.file != _BUILTIN_HEADER or not names:
        return ""
    one = "is a macro" if len(names) == 1 else "are macros"
    return f"{', '.join(names)} {one} of options=, and a name in {mistake.file} too: call the macro otherwise."
