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


def is_of_the_host(message: str) -> bool:
    """Whether the compiler's message names what only code of the host uses: calls of the runtime, ``<<<>>>``."""
    return _HOST_WORDS.search(message) is not None


def host_code_remedy(file: str, line: int) -> str:
    """Both ways out for a source whose ``line`` is code of the host."""
    return (
        f"Line {line} is code of the host, which NVRTC does not compile. Cut such code out of {file},\n"
        "or guard it from its first line to its last by #ifndef __CUDACC_RTC__ and #endif,\n"
        'or have the whole file compiled by an installed nvcc: cuda_kernel(..., compiler="nvcc").'
    )
