"""Symbols of kernels less what a build puts into them, so that two builds of one source have one name for a kernel.

Compilers name what is of one file alone after a hash of its path (``_GLOBAL__N__41f01efe_4_a_cu_table``,
``_INTERNAL_<hash>_...``), libraries put their version and the architectures of the build into a namespace
(``CUB_200802_SM_800_900``), and lambdas and unnamed types are numbered in the order of the file.
"""

from __future__ import annotations

import re

_NOISY = re.compile(r"(\d+)(?=_GLOBAL__N__|_INTERNAL_|CUB_\d|THRUST_\d)")
"""The length of a part of a mangled name, and how one begins that is not the same in every build."""
_OF_FILE = re.compile(r"_(?:GLOBAL__N_|INTERNAL)_(?:[0-9a-f]{8}_)?(\d+)_")
"""What precedes the name of a file, whose length it tells."""
_OF_LIBRARY = re.compile(r"(CUB|THRUST)_\d[\w]*")
_NUMBERED = re.compile(r"(Ut|E)\d+_")
"""Ends of what is numbered in the order of its file: unnamed types and lambdas (``UlfE0_``)."""
_NUMBERED_TAG = re.compile(r"(__nv_h?dl_(?:trailing_return_)?tagI.*?Lj)\d+(?=E)")
"""Of what stands for a lambda that the host hands to a kernel."""


def stable_symbol(symbol: str) -> str:
    """The symbol without hashes of paths and versions of libraries: still one that can be demangled."""
    parts, at = [], 0
    while found := _NOISY.search(symbol, at):
        digits, start = found[1], found.end()
        sizes = (digits[first:] for first in range(len(digits)))  # those before may end the part before
        size = next((one for one in sizes if one[0] != "0" and start + int(one) <= len(symbol)), "")
        end = start + int(size or 0)
        stable = _stable_part(symbol[start:end])
        parts += [symbol[at : start - len(size)], str(len(stable)) if size else "", stable]
        at = end
    return "".join([*parts, symbol[at:]])


def kernel_key(symbol: str) -> str:
    """What the kernels of one source have in common, however it numbers its lambdas: no symbol, only a key."""
    stable = _NUMBERED_TAG.sub(r"\1", stable_symbol(symbol))
    has_numbered = stable.startswith("_Z") and ("Ul" in stable or "Ut" in stable)
    return _NUMBERED.sub(r"\1_", stable) if has_numbered else stable


def _stable_part(name: str) -> str:
    library = _OF_LIBRARY.fullmatch(name)
    if library is not None:
        return f"{library[1]}_NS"
    of_file = _OF_FILE.match(name)
    if of_file is None:
        return name
    return f"_GLOBAL__N__{name[of_file.end() : of_file.end() + int(of_file[1][:4])]}"
