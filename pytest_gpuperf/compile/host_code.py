"""Whether what NVRTC refuses is code of the host, by the words of its message, and what to do about it."""

from __future__ import annotations

import re

_HOST_WORDS = re.compile(
    r'identifier "(?:cu(?:da|blas|rand|fft|sparse|dnn|solver|ptxGet)?[A-Z]\w*|exit|abort|atexit|getenv|system|usleep|'
    r"sleep|gettimeofday|rand|srand|time|stdin|stdout|stderr|[fs]printf|snprintf|puts|putchar|fopen|fclose|fread|fwrite|"
    r'fflush|scanf|sscanf|ato[ifl]|strto\w+|qsort|calloc|realloc|FILE|time_t|timeval|timespec)" is undefined'
    r'|namespace "std" has no member|name must be a namespace name|identifier "std" is undefined'
    r"|device-side kernel launch could not be processed|does not support exception handling"
)

_DEVICE_RUNTIME = re.compile(r"cuda(?:LaunchDevice|GetParameterBuffer|DeviceSynchronize|StreamCreate)\w*|__cudaCDP2\w+")
_UNRESOLVED = re.compile(r"Unresolved extern function '(\w+)'")
_SEPARATE = "requires separate compilation mode"
_LAUNCH = "device-side kernel launch could not be processed"

NO_DEVICE_RUNTIME = (
    "kernels that launch kernels (dynamic parallelism) have to be linked with cudadevrt, which is not done here. "
    "Launch the inner kernel from the test, or give gpuperf a function that runs both"
)


def is_of_the_host(message: str) -> bool:
    """Whether the compiler's message names what only code of the host uses: calls of the runtime, ``<<<>>>``."""
    return _HOST_WORDS.search(message) is not None


def needs_device_runtime(symbol: str) -> bool:
    """Whether a function is one of CUDA's runtime on the device, by which kernels launch kernels."""
    return _DEVICE_RUNTIME.fullmatch(symbol) is not None


def unlinked_remedy(log: str) -> str:
    """What to do about code that lacks a function at link time, by the compiler's ``log``; empty if it lacks none."""
    lacking = _UNRESOLVED.findall(log)
    if _SEPARATE in log or any(map(needs_device_runtime, lacking)):
        return f"{NO_DEVICE_RUNTIME[0].upper()}{NO_DEVICE_RUNTIME[1:]}."
    if lacking:
        return f"{', '.join(lacking)}: declared and nowhere defined. Include the source that defines it."
    return ""


def host_code_remedy(file: str, line: int, what: str) -> str:
    """Both ways out for a source whose ``line`` is code of the host, as ``what`` the compiler says of it shows."""
    launches = f"\nIf it is device code: {NO_DEVICE_RUNTIME}." if what.startswith(_LAUNCH) else ""
    return (
        f"Line {line} is code of the host, which NVRTC does not compile. Cut such code out of {file},\n"
        "or guard it from its first line to its last by #ifndef __CUDACC_RTC__ and #endif,\n"
        'or have the whole file compiled by an installed nvcc: cuda_kernel(..., compiler="nvcc").'
        f"{launches}"
    )
