"""Cubins as data: what is read of ours and of others', and that hostile ones end in BadCubin and nothing else."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.compile.compile_errors import BadCubin, UnknownArchitecture
from pytest_gpuperf.compile.machine_code.binary import analyse, ready_made
from pytest_gpuperf.compile.machine_code.cubin import constant_banks, read_cubin, text_of
from pytest_gpuperf.compile.machine_code.elf import Section, read_elf
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.source import KernelSource

TEXT = """
struct Large { char bytes[17000]; };
__constant__ float weights[4] = {1, 2, 3, 4};
extern "C" __global__ void __launch_bounds__(96) small(float* a, short b, double c) { a[b] = c + weights[1]; }
extern "C" __global__ void large(Large a, int* b) { b[0] = a.bytes[b[1]]; }
__device__ __noinline__ float helper(float x) { return x / 3.1f; }
__global__ void calls(float* a) { a[0] = helper(a[1]); }
"""


@pytest.fixture(scope="module")
def cubin() -> bytes:
    return compile_cubin(KernelSource(TEXT, "small"), "sm_90").cubin


def section_of(cubin: bytes, name: str) -> tuple[Section, int]:
    """And where its bytes lie in the file."""
    section = next(one for one in read_elf(cubin).sections if one.name == name)
    return section, cubin.index(section.data)


def edited(cubin: bytes, *edits: tuple[int, str, int]) -> bytes:
    content = bytearray(cubin)
    for at, layout, value in edits:
        struct.pack_into(layout, content, at, value)
    return bytes(content)


def test_kernels_and_their_parameters_are_read(cubin: bytes) -> None:
    found = read_cubin(cubin)
    assert sorted(found.kernels) == ["_Z5callsPf", "large", "small"]
    small = found.kernels["small"]
    assert [(p.offset, p.size) for p in small.parameters] == [(0, 8), (8, 2), (16, 8)]
    assert small.max_threads_per_block == 96
    assert 0 < small.registers < 255
    assert [(p.offset, p.size) for p in found.kernels["large"].parameters] == [(0, 17000), (17000, 8)]  # beyond 4 kB
    assert ("_Z6helperf" in found.kernels["_Z5callsPf"].functions, small.functions) == (True, ())
    (bank,) = constant_banks(found.elf, "small")
    assert (bank.name, bank.size) == (".nv.constant0.small", small.constant_bytes)
    assert (found.arch, found.assembler.count(".")) == ("sm_90", 2)
    assert read_cubin(edited(cubin, (7, "<B", 0x33), (48, "<I", 0x5A055A))).arch == "sm_90"  # as CUDA 12 writes it
    with pytest.raises(BadCubin, match="no machine code for kernel nothing"):
        text_of(found.elf, "nothing")


@pytest.mark.parametrize(
    "content",
    [b"", b"\x7fELF", b"\x7fELF\x02\x01", b"PK\x03\x04" + bytes(100), bytes(200), b"\x7fELF\x01\x01" + bytes(99)],
)
def test_what_is_no_elf_file_is_refused(content: bytes) -> None:
    with pytest.raises(BadCubin, match="not a cubin"):
        read_cubin(content)


@given(st.data())
def test_no_change_of_bytes_ends_in_anything_but_bad_cubin(cubin: bytes, data: st.DataObject) -> None:
    changed = bytearray(cubin)
    section_table = struct.unpack_from("<Q", cubin, 40)[0]
    places = st.one_of(st.integers(0, 63), st.integers(section_table, len(cubin) - 1), st.integers(0, len(cubin) - 1))
    for _ in range(data.draw(st.integers(1, 8))):
        changed[data.draw(places)] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BadCubin):
        read_cubin(bytes(changed))


# --- what is malformed, or what a reader would take much time or memory for -----------------------------


def overlapping_sections(cubin: bytes) -> bytes:
    (table,) = struct.unpack_from("<Q", cubin, 40)
    places = [table + 64 * index for index in range(5, 8)]
    return edited(cubin, *((at + 24, "<Q", 0) for at in places), *((at + 32, "<Q", len(cubin)) for at in places))


def overlapping_names(cubin: bytes) -> bytes:
    strings, place = section_of(cubin, ".strtab")
    symbols, table = section_of(cubin, ".symtab")
    content = cubin[:place] + b"x" * (strings.size - 1) + b"\0" + cubin[place + strings.size :]
    return edited(content, *((table + 24 * index, "<I", index) for index in range(symbols.size // 24)))


def endless_name(cubin: bytes) -> bytes:
    strings, _ = section_of(cubin, ".strtab")
    return cubin.replace(strings.data, strings.data.replace(b"\0", b"x"))


def gap_of_parameters(cubin: bytes) -> bytes:
    info, _ = section_of(cubin, ".nv.info.small")
    return cubin.replace(info.data, info.data.replace(struct.pack("<IHH", 0, 1, 8), struct.pack("<IHH", 0, 7, 8), 1))


def two_of_one_name(cubin: bytes) -> bytes:
    _, table = section_of(cubin, ".symtab")
    first, second, *_ = (one.index for one in read_elf(cubin).symbols if one.other & 0x10 and one.type == 2)
    return cubin[: table + 24 * second] + cubin[table + 24 * first :][:24] + cubin[table + 24 * second + 24 :]


MALFORMED = {
    "an ELF file for another machine": (lambda cubin: edited(cubin, (18, "<H", 62)), "machine 62, not 190"),
    "cut short": (lambda cubin: cubin[: len(cubin) // 2], "bytes behind the file's end"),
    "cut by a byte": (lambda cubin: cubin[:-1], "bytes behind the file's end"),
    "an attribute of another form": (
        lambda cubin: edited(cubin, (section_of(cubin, ".nv.info.small")[1], "<B", 9)), "malformed record"),
    "an attribute that does not end": (
        lambda cubin: edited(cubin, (section_of(cubin, ".nv.info.small")[1] + 2, "<H", 0xFFFF)), "malformed record"),
    "parameters that leave a gap": (gap_of_parameters, "not numbered from 0"),
    "sections that overlap much": (overlapping_sections, "its sections overlap"),
    "names that overlap over and over": (overlapping_names, "its names overlap"),
    "a name without an end": (endless_name, "or does not end"),
    "a name with control characters": (
        lambda cubin: cubin.replace(b"\0small\0", b"\0sma\x1bl\0"), r"control characters \('sma\\x1bl'\)"),
    "two kernels of one name": (two_of_one_name, "it has two kernels"),
}  # fmt: skip


@pytest.mark.parametrize("what", MALFORMED)
def test_what_is_malformed_is_refused(cubin: bytes, what: str) -> None:
    change, words = MALFORMED[what]
    with pytest.raises(BadCubin, match=words):
        read_cubin(change(cubin))


MANY = """
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
def many() -> bytes:
    return compile_cubin(KernelSource(MANY, "plain"), "sm_90").cubin


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_a_cubin_alone_has_the_evidence_that_the_log_gives(arch: str) -> None:
    """But where local memory is used: what may be spills or an array there is unknown, and no zero."""
    made = compile_cubin(KernelSource(MANY, "plain"), arch)
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


def test_a_function_of_cpp_goes_by_its_name_and_an_unknown_architecture_is_named(many: bytes) -> None:
    assert ready_made(many, "scale", place="k.cubin").symbol == "_Z5scalePfi"
    old = bytearray(many)
    struct.pack_into("<I", old, 48, struct.unpack_from("<I", old, 48)[0] & ~0xFF00 | 70 << 8)
    with pytest.raises(UnknownArchitecture, match="'sm_70' is not a known architecture"):
        ready_made(bytes(old), "plain", place="k.cubin")
