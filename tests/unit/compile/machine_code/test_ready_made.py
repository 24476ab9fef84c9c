"""Machine code that others have compiled: the cubin says by itself what the assembler's log would say."""

from __future__ import annotations

import re
import struct

import pytest

from pytest_gpuperf.compile.compile_errors import BadCubin, UnknownArchitecture, UnknownKernel
from pytest_gpuperf.compile.machine_code.binary import analyse, ready_made
from pytest_gpuperf.compile.nvcc import toolchain
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.source import KernelSource

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

extern "C" __global__ void indexed(float* a, int n)
{
    float kept[32];
    for (int i = 0; i < 32; i++) kept[i] = a[i * n];
    for (int i = 0; i < n; i++) kept[(i * 7) % 32] += kept[n % 32];
    a[threadIdx.x] = kept[n % 31];
}
"""


@pytest.fixture(scope="module")
def cubin() -> bytes:
    return compile_cubin(KernelSource(TEXT, "plain"), "sm_90").cubin


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_a_cubin_alone_has_the_evidence_that_the_log_gives(arch: str) -> None:
    """But where local memory is used: what may be spills or an array there is unknown, and no zero."""
    made = compile_cubin(KernelSource(TEXT, "plain"), arch)
    for symbol, told in analyse(made, arch).items():
        found = ready_made(made.cubin, symbol, place="k.cubin")
        assert found.arch == arch
        assert [(p.offset, p.size) for p in found.parameters] == [(p.offset, p.size) for p in told.parameters]
        assert told.profile.spill_bytes == 0
        if symbol == "indexed":
            assert found.profile.opcodes["local_store"] > 0
            assert found.profile.stack_bytes == told.profile.stack_bytes == 128
            assert (found.profile.spill_store_bytes, found.profile.spill_load_bytes) == (None, None)
        else:
            assert found.profile == told.profile  # the hash of the code too


def test_names_and_the_toolchain_are_those_given_and_those_in_the_cubin(cubin: bytes) -> None:
    by_name, by_symbol = (ready_made(cubin, name, place="here") for name in ("scale", "_Z5scalePfi"))
    assert by_name == by_symbol
    assert (by_name.name, by_name.symbol, by_name.parameters[1].type) == ("scale", "_Z5scalePfi", "int")
    assembler = toolchain().replace("nvrtc", "ptxas")
    assert by_name.toolchain == assembler
    other = ready_made(cubin, "scale", place="here", name="doubling", compiler="tile compiler 2.1")
    assert (other.name, other.toolchain) == ("doubling", f"tile compiler 2.1, {assembler}")


def test_what_is_not_there_or_not_known_is_named(cubin: bytes) -> None:
    with pytest.raises(UnknownKernel, match=re.escape('no kernel "scael" in k.cubin; there are: ')) as caught:
        ready_made(cubin, "scael", place="k.cubin")
    assert "Did you mean scale" in str(caught.value)
    for content in (b"", b"// PTX", b"\x7fELF\x02\x01", b"\x50\xed\x55\xba fat binary"):
        with pytest.raises(BadCubin, match=r"^k\.cubin: not a cubin"):
            ready_made(content, "plain", place="k.cubin")
    old = bytearray(cubin)
    struct.pack_into("<I", old, 48, struct.unpack_from("<I", old, 48)[0] & ~0xFF00 | 70 << 8)
    with pytest.raises(UnknownArchitecture, match="'sm_70' is not a known architecture"):
        ready_made(bytes(old), "plain", place="k.cubin")
