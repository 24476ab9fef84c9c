"""Small stand-ins for headers of the host, for sources that are files of whole programs.

NVRTC has no header of the C or C++ standard library.  Each text here holds what device code takes from the header of
that name: constants, types, the ``std::`` names of NVRTC's own mathematical functions, and of templates what libcu++
has under ``cuda/std/``.  Headers of which device code takes nothing are empty.  They are given to NVRTC in memory,
under names that no folder holds, and only once a source was refused for the lack of them: what compiles without them
is compiled without them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_FLOATS = """#ifndef FLT_MAX
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#endif
"""

_LIMITS = """#ifndef INT_MAX
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1LL)
#define ULLONG_MAX 18446744073709551615ULL
#define LONG_MAX ((long)(~0UL >> 1))
#define LONG_MIN (-LONG_MAX - 1L)
#define ULONG_MAX (~0UL)
#endif
"""

_WIDTHS = {8: "char", 16: "short", 32: "int", 64: "long"}
_SIGNS = {"int": "signed", "uint": "unsigned"}
_TYPES = [
    *((f"{sign}{width}_t", f"{full} {_WIDTHS[width]}") for sign, full in _SIGNS.items() for width in _WIDTHS),
    ("intptr_t", "signed long"),
    ("uintptr_t", "unsigned long"),
]
_INTEGERS = f"""#ifndef INT32_MAX
{"".join(f"typedef {meaning} {name};{chr(10)}" for name, meaning in _TYPES)}#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MAX 2147483647
#define INT32_MIN (-INT32_MAX - 1)
#define UINT32_MAX 4294967295U
#define INT64_MAX 9223372036854775807L
#define INT64_MIN (-INT64_MAX - 1L)
#define UINT64_MAX 18446744073709551615UL
#endif
#ifndef GPUPERF_STD_INTEGERS
#define GPUPERF_STD_INTEGERS
namespace std {{
{"".join(f"using ::{name};{chr(10)}" for name, _ in _TYPES)}}}
#endif
"""
"""64-bit integers are ``long``, as the host's compiler has them on Linux, so that symbols are those of nvcc.

libcu++ has them as ``long long``: where a source includes its header, that goes before all others.
"""

_FUNCTIONS = (
    "abs fabs fmod remainder fma fmax fmin fdim exp exp2 expm1 log log10 log2 log1p pow sqrt cbrt hypot sin cos tan "
    "asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc tgamma lgamma ceil floor trunc round rint "
    "nearbyint ldexp frexp modf copysign isnan isinf isfinite signbit"
)
_MATH = f"""#ifndef M_PI
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif
#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define HUGE_VALF INFINITY
#define HUGE_VAL ((double)INFINITY)
#endif
#ifndef NAN
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#endif
#ifndef GPUPERF_STD_MATH
#define GPUPERF_STD_MATH
namespace std {{
{"".join(f"using ::{name};{chr(10)}" for name in _FUNCTIONS.split())}}}
#endif
"""

_SHORT_NAMES = """#ifndef GPUPERF_SHORT_NAMES
#define GPUPERF_SHORT_NAMES
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;
#endif
"""

_SIZES = """#ifndef GPUPERF_STD_SIZES
#define GPUPERF_STD_SIZES
namespace std {
using ::size_t;
using ::ptrdiff_t;
}
#endif
"""

_ALGORITHMS = """#ifndef GPUPERF_STD_ALGORITHM
#define GPUPERF_STD_ALGORITHM
namespace std {
template <typename T> constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <typename T> constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <typename T> constexpr void swap(T& a, T& b) { T kept = a; a = b; b = kept; }
}
#endif
"""


_OF_CUDA = "array bit complex concepts initializer_list iterator limits optional span tuple type_traits utility variant"
"""Headers of templates that libcu++ has for the device."""

_EMPTY = """
any assert.h atomic bitset cassert cctype cerrno cfenv charconv chrono cinttypes clocale codecvt condition_variable
csetjmp csignal cstdarg ctime ctype.h cuchar cwchar cwctype deque errno.h exception execution fenv.h filesystem
forward_list fstream functional future inttypes.h iomanip ios iosfwd iostream istream list locale locale.h map memory
memory_resource mutex new numeric ostream queue random ratio regex scoped_allocator set setjmp.h shared_mutex signal.h
sstream stack stdarg.h stdbool.h stddef.h stdexcept stdio.h streambuf string string.h string_view system_error thread
time.h typeindex typeinfo unordered_map unordered_set valarray vector wchar.h
dirent.h dlfcn.h fcntl.h getopt.h libgen.h malloc.h omp.h pthread.h sched.h strings.h sys/ioctl.h sys/mman.h
sys/param.h sys/resource.h sys/socket.h sys/stat.h sys/time.h sys/types.h sys/utsname.h sys/wait.h unistd.h
cublas_v2.h cuda.h cuda_profiler_api.h cuda_runtime.h cuda_runtime_api.h cudnn.h cufft.h cufftXt.h curand.h cusolverDn.h
cusparse.h device_launch_parameters.h helper_cuda.h helper_functions.h mpi.h nccl.h nvtx3/nvToolsExt.h
"""
"""Of the standard library of C++17 and C, of the operating system, and of libraries that the host calls."""

BEFORE = "gpuperf_names_of_the_host.h"
"""Header of what nvcc declares without any ``#include``, and of constants that are copied along without theirs."""

HEADERS = {
    **dict.fromkeys(_EMPTY.split(), ""),
    **{
        name: f"#include <cuda/std/{name}>\nnamespace std {{ using namespace cuda::std; }}\n"
        for name in _OF_CUDA.split()
    },
    **dict.fromkeys(("cstddef", "cstdio", "cstring"), _SIZES),
    **dict.fromkeys(("stdlib.h", "cstdlib"), _SHORT_NAMES + _SIZES),
    **dict.fromkeys(("math.h", "cmath"), _MATH),
    **dict.fromkeys(("float.h", "cfloat"), _FLOATS),
    **dict.fromkeys(("limits.h", "climits"), _LIMITS),
    **dict.fromkeys(("stdint.h", "cstdint"), _INTEGERS),
    "algorithm": _ALGORITHMS,
    BEFORE: "".join((_SHORT_NAMES, _SIZES, _INTEGERS, _LIMITS, _FLOATS, _MATH)),
}
"""Text of each header, by the name that sources include it by."""

DIGEST = hashlib.sha256(repr(sorted(HEADERS.items())).encode()).hexdigest()
"""Of all texts: what was compiled with others is compiled again."""

_DECLARED = frozenset(re.findall(r"(?:#define |using ::|typedef [\w ]+ )(\w+)", HEADERS[BEFORE]))
_UNDEFINED = re.compile(r'identifier "(\w+)" is undefined|namespace "std" has no member "(\w+)"')
_CUDA_INTEGERS = "cuda/std/cstdint"
_DECLARED_TWICE = re.compile(rf"{_CUDA_INTEGERS}\(\d+\): error[^\n]*: invalid redeclaration of type name")

PRE_INCLUDED = (_CUDA_INTEGERS, BEFORE)
"""In the order in which they are read before a source that wants them."""


def stand_ins(missing: Iterable[str]) -> tuple[str, ...]:
    """Those of the ``missing`` headers that there is a text for."""
    return tuple(sorted(set(missing) & (HEADERS.keys() - {BEFORE})))


def texts_of(names: Iterable[str]) -> bytes:
    """The texts of these headers, for what they include."""
    return "".join(HEADERS[name] for name in names).encode()


def only_of_the_host(given: Iterable[str]) -> bool:
    """Whether among headers that were ``given`` there are some of which device code takes nothing."""
    return any(HEADERS.get(name) == "" for name in given)


def first_of_all(log: str) -> list[str]:
    """Those of ``PRE_INCLUDED`` that the compiler's ``log`` asks for: names it misses, types it has twice."""
    lacks = any((one or other) in _DECLARED for one, other in _UNDEFINED.findall(log))
    twice = _DECLARED_TWICE.search(log) is not None
    return [name for name, wanted in zip(PRE_INCLUDED, (twice, lacks), strict=True) if wanted]
