"""Cubins as data: what is read from real ones, and that hostile ones end in BadCubin and nothing else."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.compile.compile_errors import BadCubin
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.machine_code.cubin import constant_banks, read_cubin, text_of
from pytest_gpuperf.compile.machine_code.elf import Elf, read_elf
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
    return compile_kernel(KernelSource(TEXT, "small"), "sm_90").cubin


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


def test_a_cubin_of_cuda_12_tells_its_architecture_by_other_flags(cubin: bytes) -> None:
    old = bytearray(cubin)
    old[7] = 0x33
    struct.pack_into("<I", old, 48, 0x5A055A)
    assert read_cubin(bytes(old)).arch == "sm_90"


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF", b"PK\x03\x04" + bytes(100), bytes(200), b"\x7fELF\x01\x01" + bytes(99)]
)
def test_what_is_no_elf_file_is_refused(content: bytes) -> None:
    with pytest.raises(BadCubin, match="not a cubin"):
        read_cubin(content)


def test_an_elf_file_for_another_machine_is_refused(cubin: bytes) -> None:
    with pytest.raises(BadCubin, match="machine 62, not 190"):
        read_cubin(cubin[:18] + struct.pack("<H", 62) + cubin[20:])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_cubin_is_refused(cubin: bytes, share: float) -> None:
    with pytest.raises(BadCubin, match="bytes behind the file's end"):
        read_cubin(cubin[: int(len(cubin) * share)])


def test_a_kernel_that_is_not_there_has_no_code(cubin: bytes) -> None:
    with pytest.raises(BadCubin, match="no machine code for kernel nothing"):
        text_of(read_cubin(cubin).elf, "nothing")


@given(st.data())
def test_no_change_of_bytes_ends_in_anything_but_bad_cubin(cubin: bytes, data: st.DataObject) -> None:
    changed = bytearray(cubin)
    section_table = struct.unpack_from("<Q", cubin, 40)[0]
    places = st.one_of(st.integers(0, 63), st.integers(section_table, len(cubin) - 1), st.integers(0, len(cubin) - 1))
    for _ in range(data.draw(st.integers(1, 8))):
        changed[data.draw(places)] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BadCubin):
        read_cubin(bytes(changed))


def info_of(elf: Elf, cubin: bytes, name: str) -> int:
    """Where a section's bytes lie in the file."""
    section = elf.section(name)
    assert section is not None
    return cubin.index(section.data)


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [(0, b"\x09", "malformed record"), (2, b"\xff\xff", "malformed record")],
)
def test_a_malformed_attribute_is_refused(cubin: bytes, at: int, value: bytes, words: str) -> None:
    where = info_of(read_elf(cubin), cubin, ".nv.info.small") + at
    with pytest.raises(BadCubin, match=words):
        read_cubin(cubin[:where] + value + cubin[where + len(value) :])


def test_parameters_that_leave_a_gap_are_refused(cubin: bytes) -> None:
    section = read_elf(cubin).section(".nv.info.small")
    assert section is not None
    changed = section.data.replace(struct.pack("<IHH", 0, 1, 8), struct.pack("<IHH", 0, 7, 8), 1)
    assert changed != section.data
    with pytest.raises(BadCubin, match="not numbered from 0"):
        read_cubin(cubin.replace(section.data, changed))


# --- what a reader would take much time or memory for -------------------------------------------


def section_headers(cubin: bytes) -> list[int]:
    (table,), (count,) = struct.unpack_from("<Q", cubin, 40), struct.unpack_from("<H", cubin, 60)
    return [table + 64 * index for index in range(count)]


def edited(cubin: bytes, *edits: tuple[int, str, int]) -> bytes:
    content = bytearray(cubin)
    for at, layout, value in edits:
        struct.pack_into(layout, content, at, value)
    return bytes(content)


def symbol_table(cubin: bytes) -> tuple[int, int]:
    """Offset and number of entries."""
    (at,) = (at for at in section_headers(cubin) if struct.unpack_from("<I", cubin, at + 4)[0] == 2)
    offset, size = struct.unpack_from("<QQ", cubin, at + 24)
    return offset, size // 24


def test_sections_that_overlap_much_are_refused(cubin: bytes) -> None:
    whole = [edit for at in section_headers(cubin)[5:8] for edit in ((at + 24, "<Q", 0), (at + 32, "<Q", len(cubin)))]
    with pytest.raises(BadCubin, match="its sections overlap"):
        read_cubin(edited(cubin, *whole))


def test_names_that_overlap_over_and_over_are_refused(cubin: bytes) -> None:
    found = read_elf(cubin)
    table, count = symbol_table(cubin)
    (strings,) = (one for one in found.sections if one.name == ".strtab")
    place = cubin.index(strings.data)
    long = bytearray(cubin)
    long[place : place + strings.size] = b"x" * (strings.size - 1) + b"\0"
    names = [(table + 24 * index, "<I", index) for index in range(count)]
    with pytest.raises(BadCubin, match="its names overlap"):
        read_cubin(edited(bytes(long), *names))


def test_a_name_without_an_end_is_refused(cubin: bytes) -> None:
    strings = next(one for one in read_elf(cubin).sections if one.name == ".strtab")
    with pytest.raises(BadCubin, match="or does not end"):
        read_cubin(cubin.replace(strings.data, strings.data.replace(b"\0", b"x")))


def test_a_name_with_control_characters_is_refused_and_escaped(cubin: bytes) -> None:
    with pytest.raises(BadCubin, match=r"control characters \('sma\\x1bl'\)"):
        read_cubin(cubin.replace(b"\0small\0", b"\0sma\x1bl\0"))


def test_two_kernels_of_one_name_are_refused(cubin: bytes) -> None:
    table, _ = symbol_table(cubin)
    first, second, *_ = (one.index for one in read_elf(cubin).symbols if one.other & 0x10 and one.type == 2)
    with pytest.raises(BadCubin, match="it has two kernels"):
        read_cubin(cubin[: table + 24 * second] + cubin[table + 24 * first :][:24] + cubin[table + 24 * second + 24 :])
