"""Machine code that others have compiled: the cubin says by itself what the assembler's log would say."""

from __future__ import annotations

import re
import struct

import pytest

from pytest_gpuperf.compile.compile_errors import BadCubin, UnknownArchitecture, UnknownKernel
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.machine_code.binary import ready_made
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.model.evidence import KernelBinary

TEXT = """
extern "C" __global__ void plain(float* a) { a[threadIdx.x] *= 2; }

extern "C" __global__ void tile(float* a)
{
    __shared__ float s[25];
    s[threadIdx.x % 25] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] += s[(threadIdx.x + 1) % 25];
}

extern "C" __global__ void dynamic(float* a)
{
    extern __shared__ float d[];
    __shared__ __align__(1024) double s[10];
    d[threadIdx.x] = a[threadIdx.x];
    s[threadIdx.x % 10] = a[threadIdx.x + 1];
    __syncthreads();
    a[threadIdx.x] += d[threadIdx.x ^ 1] + s[threadIdx.x % 7];
}

extern "C" __global__ void barriers(float* a)
{
    asm volatile("bar.sync 3, 64;");
    a[threadIdx.x] += 1;
    asm volatile("bar.sync 5, 64;");
}

__device__ __noinline__ float callee(float x)
{
    __shared__ float s[16];
    s[threadIdx.x % 16] = x;
    __syncthreads();
    return s[(threadIdx.x + 3) % 16];
}

extern "C" __global__ void calls(float* a) { a[threadIdx.x] = callee(a[threadIdx.x]); }

__global__ void scale(float* a, int n) { a[threadIdx.x] *= n; }
"""
INDEXED = """
extern "C" __global__ void indexed(float* a, int n)
{
    float kept[32];
    for (int i = 0; i < 32; i++) kept[i] = a[i * n];
    for (int i = 0; i < n; i++) kept[(i * 7) % 32] += kept[n % 32];
    a[threadIdx.x] = kept[n % 31];
}
"""


def compiled(kernel: str, arch: str = "sm_90", text: str = TEXT) -> KernelBinary:
    return compile_kernel(KernelSource(text, kernel), arch)


def found_in(binary: KernelBinary, symbol: str = "", place: str = "k.cubin") -> KernelBinary:
    return ready_made(binary.cubin, symbol or binary.symbol, place=place)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("kernel", ["plain", "tile", "dynamic", "barriers", "calls"])
def test_a_cubin_alone_has_the_evidence_that_the_log_gives(kernel: str, arch: str) -> None:
    made = compiled(kernel, arch)
    found = found_in(made)
    assert found.profile == made.profile  # the hash of the code too
    assert found.arch == arch
    assert [(one.offset, one.size) for one in found.parameters] == [(one.offset, one.size) for one in made.parameters]
    assert made.profile.spill_bytes == 0


def test_what_may_be_spills_or_an_array_in_local_memory_is_unknown_and_no_zero() -> None:
    made = compiled("indexed", text=INDEXED)
    found = found_in(made)
    assert (made.profile.spill_store_bytes, made.profile.spill_load_bytes) == (0, 0)
    assert found.profile.opcodes["local_store"] > 0
    assert (found.profile.spill_store_bytes, found.profile.spill_load_bytes, found.profile.spill_bytes) == (None,) * 3
    assert found.profile.stack_bytes == made.profile.stack_bytes == 128


def test_the_toolchain_is_the_assembler_that_the_cubin_names_and_the_compiler_before_it() -> None:
    assert found_in(compiled("plain")).toolchain == toolchain().replace("nvrtc", "ptxas")
    cubin = compiled("plain").cubin
    by_other = ready_made(cubin, "plain", place="here", compiler="tile compiler 2.1")
    assert by_other.toolchain == "tile compiler 2.1, " + toolchain().replace("nvrtc", "ptxas")


def test_a_kernel_is_found_by_its_symbol_or_its_plain_name() -> None:
    made = compiled("scale")
    by_name, by_symbol = found_in(made, "scale"), found_in(made, "_Z5scalePfi")
    assert by_name == by_symbol
    assert (by_name.name, by_name.symbol, by_name.parameters[1].type) == ("scale", "_Z5scalePfi", "int")
    assert ready_made(made.cubin, "scale", place="here", name="doubling").name == "doubling"


def test_an_unknown_kernel_is_named_with_those_that_are_there() -> None:
    with pytest.raises(UnknownKernel, match=re.escape('no kernel "scael" in k.cubin; there are: ')) as caught:
        found_in(compiled("plain"), "scael")
    assert "Did you mean scale" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"// PTX", b"\x7fELF\x02\x01", b"\x50\xed\x55\xba fat binary"])
def test_what_is_no_cubin_is_named(content: bytes) -> None:
    with pytest.raises(BadCubin, match=r"^k\.cubin: not a cubin"):
        ready_made(content, "plain", place="k.cubin")


def test_an_architecture_whose_limits_are_not_known_is_refused() -> None:
    cubin = bytearray(compiled("plain").cubin)
    flags = struct.unpack_from("<I", cubin, 48)[0]
    struct.pack_into("<I", cubin, 48, flags & ~0xFF00 | 70 << 8)
    with pytest.raises(UnknownArchitecture, match="'sm_70' is not a known architecture"):
        ready_made(bytes(cubin), "plain", place="k.cubin")
