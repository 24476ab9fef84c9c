"""The exact text of both kinds of file, and the exact words about a text that is none."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from baseline_samples import H200, NVRTC, make_key, make_round, make_session, make_static, make_time

from pytest_gpuperf.baselines.baseline_errors import NewerSchemaError, UnreadableBaselineError, UnwritableEvidenceError
from pytest_gpuperf.baselines.canonical import canonical_bytes
from pytest_gpuperf.baselines.merging import merge_static, merge_time
from pytest_gpuperf.baselines.parsing import decode, read_bounded
from pytest_gpuperf.baselines.schema_version import SCHEMA_VERSION

PATH = Path("baselines/file.json")

STATIC = f"""{{
  "kind": "static",
  "schema": {SCHEMA_VERSION},
  "target": "sm_90",
  "toolchains": {{
    "nvrtc 13.0.88": {{
      "codes": {{
        "transpose_padded": {{
          "figures": {{"barriers": 1, "code_bytes": 1152, "constant_bytes": 368, "instructions": 61, \
"opcodes": {{"barrier": 1, "global_load": 4, "shared_store": 4}}, "registers": 32, "shared_bytes": 4224, \
"spill_load_bytes": 0, "spill_store_bytes": 0, "stack_bytes": 0}},
          "hashes": {{"code": "{"c0" * 32}", "source": "{"50" * 32}"}},
          "occupancy": {{
            "32x32x1": {{"blocks_per_sm": 2, "fraction": 0.6666666666666666, "limiter": "registers", \
"warps_per_sm": 32}}
          }}
        }}
      }},
      "tests": {{
        "test_transpose": {{"": {{"padded": {{"block": [32, 32, 1], "code": "transpose_padded"}}}}}}
      }}
    }}
  }}
}}
"""

TIME = f"""{{
  "codes": {{
    "transpose_padded": {{"code": "{"c0" * 32}"}}
  }},
  "kind": "time",
  "schema": {SCHEMA_VERSION},
  "sessions": [
    {{"cuda": "13.0", "cupy": "14.2.0", "date": "2026-11-01T10:15:00Z", "driver": "580.95.05", "gpu": "NVIDIA H200", \
"id": "20261101T101500-9f3a", "overhead_ns": 0, "tick_ns": 32, "timer": "cupti", \
"toolchain": "nvrtc 13.0.88", "uuid": "GPU-1"}}
  ],
  "target": "nvidia-h200",
  "tests": {{
    "test_transpose": {{
      "": {{
        "padded": {{
          "block": [32, 32, 1],
          "cache": "cold",
          "code": "transpose_padded",
          "counter_ranges": {{
            "é": [1.5, 9007199254740992.0]
          }},
          "counters": {{
            "dram__bytes_*.sum": {{"read": 512}},
            "é": 2.5
          }},
          "launch": "grid=(1024, 1, 1) block=(32, 32, 1) shared=0",
          "rounds": {{
            "20261101T101500-9f3a": {{"midmeans": [51230]}}
          }},
          "timer": "cupti"
        }}
      }}
    }}
  }}
}}
"""


def test_static_evidence_has_one_text() -> None:
    assert canonical_bytes(merge_static(None, "sm_90", [(NVRTC, make_key(), make_static())])).decode() == STATIC


def test_time_evidence_has_one_text() -> None:
    session = make_session()
    entry = make_round(session, midmean=51230.0)
    record = make_time(
        session,
        rounds=[entry],
        cubin="",
        counters={"\u00e9": 2.5, "dram__bytes_read.sum": 512.0},
        counter_ranges={"\u00e9": (1.5, 2.0**53)},
    )
    assert canonical_bytes(merge_time(None, H200, [(make_key(), record)], [session])).decode() == TIME


def test_evidence_that_cannot_be_written_is_named_with_its_target() -> None:
    with pytest.raises(UnwritableEvidenceError) as caught:
        canonical_bytes(merge_static(None, "sm_90", [(NVRTC, make_key(), make_static(-1))]))
    assert str(caught.value) == (
        "this evidence cannot become a baseline for sm_90: "
        "nvrtc 13.0.88, test_transpose [padded]: registers is -1, below zero"
    )


def problem(content: str | bytes, target: str = H200) -> str:
    with pytest.raises(UnreadableBaselineError) as caught:
        decode(content if isinstance(content, bytes) else content.encode(), PATH, target)
    return caught.value.problem


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": "\xff"}', "it is not UTF-8 (byte 7)"),
        ("\n \t", "it is empty"),
        ('{"a": 1,\n  b}', "line 2, column 3: Expecting property name enclosed in double quotes"),
        ("[1]", "it holds no JSON object"),
        ('{"a": {"x": 1, "b": 2, "c": 3, "b": 4, "c": 5}}', "the key 'b' appears twice in one object"),
        ('{"a": [Infinity]}', "it holds Infinity, which is not a number that a baseline may have"),
        ('{"a": [-1e400]}', "the number -1e400 is out of range"),
        ('{"a": ' + "9" * 21 + "}", "it holds an integer of 21 characters"),
        ('{"a": ' + "9" * 20 + "}", "$.a is beyond 64 bits"),
        ("{}", "its schema version is missing, not a whole number"),
        ('{"schema": "1"}', "its schema version is '1', not a whole number"),
        ('{"schema": false}', "its schema version is 'False', not a whole number"),
        ('{"schema": [1]}', "its schema version is not text, not a whole number"),
        ('{"schema": -1}', f"its schema version is -1, and this pytest-gpuperf reads {SCHEMA_VERSION}"),
        (TIME.replace(H200, "x-1"), "it says that its target is 'x-1', but lies in the folder of 'nvidia-h200'"),
        (TIME.replace('"target": "nvidia-h200",', ""), "it says that its target is missing, but lies in the folder of "
         "'nvidia-h200'"),
        (STATIC.replace("sm_90", H200), "its kind is 'static', and in the folder of 'nvidia-h200' must be 'time'"),
        (TIME.replace('"kind": "time",', ""), "its kind is missing, and in the folder of 'nvidia-h200' must be 'time'"),
        ("[" * 100_000, "it is nested too deeply"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_baseline_is_told_why(content: str | bytes, words: str) -> None:
    assert problem(content) == words


def test_a_time_file_in_the_folder_of_an_architecture_is_told_so() -> None:
    words = "its kind is 'time', and in the folder of 'sm_90' must be 'static'"
    assert problem(TIME.replace(H200, "sm_90"), "sm_90") == words


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", ">>>>>>> theirs"])
def test_a_merge_conflict_is_named_with_its_line_and_every_way_out(marker: str) -> None:
    with pytest.raises(UnreadableBaselineError) as caught:
        decode(TIME.replace('  "codes"', f'{marker}\n  "codes"').encode(), PATH, H200)
    assert str(caught.value) == (
        "baselines/file.json: this baseline cannot be read: line 2 is an unresolved merge conflict.\n"
        "Resolve the code first; then merge this and all other baselines in conflict with 'gpuperf resolve'. Or take "
        "either side (while git merges: git checkout --theirs -- baselines/file.json; see "
        "docs/how-to/accepting-changes.md, 'Merge conflicts'), or delete it and record it again with "
        "--update-baselines."
    )


def test_a_damaged_file_is_named_with_what_to_do() -> None:
    with pytest.raises(UnreadableBaselineError) as caught:
        decode(b"[]", PATH, H200)
    assert str(caught.value) == (
        "baselines/file.json: this baseline cannot be read: it holds no JSON object.\n"
        "Make it readable, restore it from version control (git checkout -- baselines/file.json), or delete it and "
        "record it again with --update-baselines."
    )


def test_a_long_problem_is_cut_at_four_hundred_characters() -> None:
    found = problem(TIME.replace('"launch": ', f'"{"x" * 500}": 1, "launch": '))
    assert len(found) == 400
    assert found.endswith("...")


def test_a_newer_file_is_refused_even_if_it_lies_elsewhere() -> None:
    with pytest.raises(NewerSchemaError):
        decode(f'{{"schema": {SCHEMA_VERSION + 1}}}'.encode(), PATH, H200)


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 2 * 1024 * 1024)
    assert read_bounded(path, 2 * 1024 * 1024) == path.read_bytes()
    with pytest.raises(UnreadableBaselineError) as caught:
        read_bounded(path, 2 * 1024 * 1024 - 1)
    assert caught.value.problem == "it is larger than 1 MB"
    assert str(caught.value).startswith(f"{path}: ")
    assert read_bounded(tmp_path / "none", 1) is None


def test_a_huge_file_costs_no_more_memory_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(64 * 1024 * 1024)
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableBaselineError):
            read_bounded(path, 1024 * 1024)
        assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_what_the_system_says_of_a_file_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UnreadableBaselineError) as caught:
        read_bounded(tmp_path / "file/inside", 1)
    assert str(caught.value).startswith(
        f"{tmp_path}/file/inside: this baseline cannot be read: the system says: Not a dir"
    )
    with pytest.raises(UnreadableBaselineError) as caught:
        read_bounded(tmp_path, 1)
    assert str(caught.value).startswith(f"{tmp_path}: this baseline cannot be read: it is not a regular file.")
