"""Files of records and their places: what is written is read back, equal content is equal bytes, all else is named."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from baseline_samples import H200, NVRTC, make_host_time, make_key, make_session, make_static, make_time, time_update
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.baselines import records as files
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.layout import (
    arch_order,
    cubin_named,
    cubin_path,
    is_arch,
    is_device,
    place_of,
    record_file,
    target_order,
)
from pytest_gpuperf.baselines.records import Records, decode, encode
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.time_record import SecondaryMetrics

ODD_MODULES = (
    "", ".py", "a/.py", "test_x.txt", "/etc/test_x.py", "../test_x.py", "a/../../test_x.py", "./test_x.py",
    "a//test_x.py", "C:/test_x.py", "C:test_x.py", "a\\..\\test_x.py", "\\\\host\\share\\test_x.py",
    "test\0x.py", "test\nx.py", "test_\ud800.py", "test?.py", "test*.py", "a|b.py", "a:stream.py",
)  # fmt: skip
ODD_TARGETS = ("", "..", "cubins", "SM_90", "sm_9", "sm_90x", "sm_90/..", "a/b", "a.", "H200", "H\n200")


def test_records_and_cubins_have_their_places(tmp_path: Path) -> None:
    assert record_file("sm_90", "MAX/test_x.v2.py") == "sm_90/MAX/test_x.v2.jsonl"
    assert place_of("sm_90/MAX/test_x.v2.jsonl") == ("sm_90", "MAX/test_x.v2.py")
    cubin = cubin_path(tmp_path, "3f" * 32)
    assert cubin == tmp_path / "cubins" / f"{'3f' * 32}.cubin.z"
    archs, models = ("sm_75", "sm_90a", "sm_120f"), ("nvidia-h200", "nvidia-rtx-a6000", "x")
    assert all(is_arch(target) and not is_device(target) for target in archs)
    assert all(is_device(target) and not is_arch(target) for target in models)
    assert sorted([*models, *reversed(archs)], key=target_order) == [*archs, *models]
    assert sorted(["sm_90a", "sm_120", "sm_90"], key=arch_order) == ["sm_90", "sm_90a", "sm_120"]
    odd = ("other/" + cubin.name, f"cubins/{'3f' * 32}", "cubins/3f.cubin.z", "cubins/README.md")
    assert [cubin_named(Path(path)) for path in (f"a/cubins/{cubin.name}", *odd)] == ["3f" * 32, "", "", "", ""]


def test_a_path_that_could_escape_or_not_be_stored_is_refused() -> None:
    for module in ODD_MODULES:
        with pytest.raises(BaselineError, match=r"cannot name a baseline file.* below pytest's root directory"):
            record_file("sm_90", module)
        assert place_of(f"sm_90/{module.removesuffix('.py')}.json") is None
    for target in ODD_TARGETS:
        assert not is_arch(target)
        assert not is_device(target)
        with pytest.raises(BaselineError, match="is no baseline target: expected an architecture such as sm_90"):
            record_file(target, "test_x.py")


@given(st.text(max_size=30))
def test_no_module_leads_out_of_the_folder(module: str) -> None:
    try:
        path = record_file("sm_90", f"{module}.py")
    except BaselineError:
        return
    assert ".." not in Path(path).parts
    assert place_of(path) == ("sm_90", f"{module}.py")


FULL = make_time(
    make_session(), counters={"smsp__inst_executed.sum": 21899808, "lts__t_sector_hit_rate.pct": 86.93},
    counter_ranges={"lts__t_sectors.sum": (1.0, 2.5)},
    secondary=SecondaryMetrics(memory_bytes=4096, host=make_host_time()),
    bytes=42, flops=43, grid=(9, 1, 1), dynamic_shared_bytes=16,
)  # fmt: skip
MODULE = make_key().module
STATIC = {(make_key(), NVRTC): make_static(opcodes={"barrier": 1, "fp64": 0})}
TIME = {(make_key(), ""): FULL}
SAMPLES = [(encode(STATIC, "sm_90"), "sm_90"), (encode(TIME, H200), H200)]


def problem(content: bytes, target: str = H200) -> str:
    with pytest.raises(BaselineError) as caught:
        decode(content, "baselines/file.jsonl", target, MODULE)
    message = str(caught.value)
    assert message.startswith("baselines/file.jsonl: this baseline cannot be read: ")
    assert message.isprintable() or "\x1b" not in message
    return message


def changed(content: bytes, path: list[str | int], value: Any) -> bytes:
    """A sample with another value at a place of its record."""
    head, _, line = content.partition(b"\n\n")
    tree = place = json.loads(line)
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return head + b"\n\n" + json.dumps(tree).encode() + b"\n"


@pytest.mark.parametrize(("records", "sample"), [(STATIC, SAMPLES[0]), (TIME, SAMPLES[1])], ids=["static", "time"])
def test_records_come_back_as_they_were_written(records: Records, sample: tuple[bytes, str]) -> None:
    content, target = sample
    read = decode(content, "file", target, MODULE)
    assert read == records
    assert encode(read, target) == content


def test_a_file_has_a_line_for_each_record_apart_from_its_neighbours() -> None:
    records = {
        (make_key(test, "padded"), NVRTC): make_static() for test in ("test_b", "test_a[\u00e9 \"']", "test_a[\\x1b]")
    }
    content = encode(records, "sm_90")
    head, *lines = content.decode().split("\n\n")
    assert head == '{"schema":7,"target":"sm_90"}'
    assert [json.loads(line)["test"] for line in lines] == sorted(key.test for key, _ in records)
    assert content.endswith(b"}\n")
    assert not content.endswith(b"\n\n")
    assert lines[-1].startswith('{"test":"test_b","workload":"padded","toolchain":"nvrtc 13.0.88","record":{"kernel":')


# --- what anybody may have put there -------------------------------------------------------------


@pytest.mark.parametrize(("content", "words"), [
    (b"", "line 1: Input data was truncated"),
    (b"[]", "line 1: Expected `object`"),
    (b"\xff\xfe{}", "line 1: 'utf-8' codec can't decode"),
    (b'{"schema":8,"target":"nvidia-h200"}', "its schema is 8, and this pytest-gpuperf reads 7: upgrade"),
    (b'{"schema":6,"kind":"time","target":"nvidia-h200"}', "and this pytest-gpuperf reads 7: record it again"),
    (b'{"schema":7,"target":"nvidia-a100"}', "its target is 'nvidia-a100', and it lies in the folder of"),
    (b'{"schema":7,"target":"nvidia-h200","more":1}', "unknown field `more`"),
    (b'{"schema":7,"target":"nvidia-h200"}\n{', "line 2: Input data was truncated"),
    (b'{"schema":7,"target":"nvidia-h200"}\n\n[1]\n', "line 3: Expected `object`, got `array`"),
    (b'{"schema":7,"target":"\\u001b[31m"}', "there is a control character in a text, or an escaped one"),
    (b'{"schema":7,"target":"\x1b[31m"}', "there is a control character in a text"),
    (b"<<<<<<< HEAD\n{}\n=======\n", "line 1 is an unresolved merge conflict"),
    (b"<<<<<<< HEAD\n", "git checkout --ours -- baselines && pytest --update-baselines=all"),
    (SAMPLES[1][0] + b">>>>>>> other\n", "is an unresolved merge conflict"),
    (SAMPLES[1][0] + SAMPLES[1][0].split(b"\n")[2], "the record of test_transpose [padded] is there twice"),
    (b'{"schema":7,' + b'"x":[' * 200_000, "line 1"),
    (b"," * 1_200_001, "more than 1200000 values"),
], ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else None)  # fmt: skip
def test_malformed_content_is_named_with_its_line(content: bytes, words: str) -> None:
    assert words in problem(content)


@pytest.mark.parametrize(("path", "value", "words"), [
    (["surprise"], 1, "unknown field `surprise`"),
    (["sessions", 0, "midmeans", 0], "fast", "Expected `float`, got `str`"),
    (["sessions", 0, "midmeans", 0], 0, "a time is outside of"),
    (["sessions", 0, "midmeans", 0], 1e300, "a time is outside of"),
    (["record", "cubin"], "../../../../bin/sh", "its cubin is no SHA-256"),
    (["record", "secondary", "host", "ratios", 0], 0.0, "a time is outside of"),
    (["record", "kernel"], "\u202egpj", "an escaped one"),
    (["record", "profile", "registers"], -1, "test_transpose [padded]: a count is below zero, or too large"),
    (["record", "profile", "instructions"], 2**60, "a count is below zero, or too large"),
    (["record", "profile", "opcodes"], {"fp32": 2**70}, "line 3: "),
    (["record", "profile", "opcodes"], {"a": -1}, "a count is below zero, or too large"),
    (["record", "block"], [-1, 1, 1], "a count is below zero, or too large"),
])  # fmt: skip
def test_hostile_fields_are_named(path: list[str | int], value: Any, words: str) -> None:
    content, target = SAMPLES[0 if "profile" in path or "block" in path else 1]
    assert words in problem(changed(content, path, value), target)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(st.sampled_from(SAMPLES), st.data())
def test_any_value_anywhere_is_read_or_refused(sample: tuple[bytes, str], data: st.DataObject) -> None:
    content, target = sample
    head, _, line = content.partition(b"\n\n")
    tree = place = json.loads(line)
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], (dict, list)) or not place[key] or data.draw(st.integers(0, 4)) == 0:
            place[key] = data.draw(json_values)
            break
        place = place[key]
    with contextlib.suppress(BaselineError):
        read = decode(
            head + b"\n\n" + json.dumps(tree, ensure_ascii=False).encode("utf-8", "replace"), "file", target, MODULE
        )
        written = encode(read, target)
        assert encode(decode(written, "file", target, MODULE), target) == written


def test_figures_of_a_time_are_rounded_once() -> None:
    """Static records are exact."""
    session = make_session(tick_ns=32.123456789012)
    raw = make_time(
        session, rounds=(51234.5678,), counters={"ratio": 1.23456789123, "count": 12_345_678_901.0},
        counter_ranges={"ratio": (0.111111111111, 1.5)},
    )  # fmt: skip
    content = encode({(make_key(), ""): raw}, H200)
    (found,) = decode(content, "file", H200, MODULE).values()
    assert (found.rounds, found.session and found.session.tick_ns) == ((51234.6,), 32.1234568)
    assert found.counters == {"ratio": 1.23456789, "count": 12_345_678_901.0}
    assert found.counter_ranges == {"ratio": (0.111111111, 1.5)}
    assert encode({(make_key(), ""): found}, H200) == content
    assert b"0.6666666666666666" in SAMPLES[0][0]
    line = encode(TIME, H200).decode()
    assert '"counters":{"lts__t_sector_hit_rate.pct":86.93,"smsp__inst_executed.sum":21899808}' in line
    assert '"tick_ns":32,' in line


# --- what must not be written --------------------------------------------------------------------


def test_record_of_no_use_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = make_session()
    record = make_time(session)
    for midmean in (float("nan"), float("inf"), 0.0, -1.0):
        bad = msgspec.structs.replace(record, rounds=(midmean,))
        with pytest.raises(BaselineError, match="cannot become a baseline for nvidia-h200"):
            BaselineStore(tmp_path / "baselines").write(time_update(session, bad))
    assert not (tmp_path / "baselines").exists()
    for test in ("test_\x1b[31m", "test_\ud800", "test_\u2028"):
        with pytest.raises(BaselineError, match="cannot become a baseline"):
            encode({(make_key(test, "w"), NVRTC): make_static()}, "sm_90")
    monkeypatch.setattr(files, "MAX_FILE_BYTES", len(SAMPLES[0][0]))
    assert encode(STATIC, "sm_90") == SAMPLES[0][0]
    monkeypatch.setattr(files, "MAX_FILE_BYTES", len(SAMPLES[0][0]) - 1)
    with pytest.raises(BaselineError, match="Split the test module"):
        encode(STATIC, "sm_90")


# --- what git makes of them ----------------------------------------------------------------------

TESTS, PAIRS = 12, 20


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_updates_of_two_tests_of_a_module_merge_by_git(tmp_path: Path) -> None:
    """Of neighbours too, in files of both kinds; and the merged file has both updates."""
    keys = [make_key(f"test_{number:02}") for number in range(TESTS)]

    def merged(target: str, first: int, second: int) -> bool:
        def content(registers: int, *those: int) -> dict[tuple[Key, str], Any]:
            update = make_static(registers) if target == "sm_90" else make_time(make_session(registers), cubin="")
            return {(keys[one], NVRTC if target == "sm_90" else ""): update for one in those}

        base = content(1, *range(TESTS))
        ours, theirs = content(2, first), content(3, second)
        files = {"ours": {**base, **ours}, "base": base, "theirs": {**base, **theirs}}
        for name, records in files.items():
            (tmp_path / name).write_bytes(encode(records, target))
        done = subprocess.run(["git", "merge-file", "-p", *files], cwd=tmp_path, capture_output=True, check=False)
        if done.returncode == 0:
            assert decode(done.stdout, "file", target, MODULE) == {**base, **ours, **theirs}
        return done.returncode == 0

    chance = random.Random(1)
    pairs = [(4, 5), *(tuple(chance.sample(range(TESTS), 2)) for _ in range(PAIRS - 1))]
    for target in ("sm_90", H200):
        assert sum(merged(target, first, second) for first, second in pairs) >= 18
