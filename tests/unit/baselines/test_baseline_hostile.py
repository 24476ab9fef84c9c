"""Whatever bytes a pull request puts into a baseline, reading it ends in a record or a BaselineError."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from baseline_samples import H200, NVRTC, make_key, make_session, make_static, make_time, static_update, time_update
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_gpuperf.baselines.baseline_errors import BaselineError, UnreadableBaselineError, UnsafePathError
from pytest_gpuperf.baselines.canonical import canonical_bytes
from pytest_gpuperf.baselines.cubin_store import stored_cubins
from pytest_gpuperf.baselines.merging import merge_static, merge_time
from pytest_gpuperf.baselines.parsing import decode
from pytest_gpuperf.baselines.schema_version import SCHEMA_VERSION
from pytest_gpuperf.baselines.snapshots import OnDisk
from pytest_gpuperf.baselines.store import BaselineStore

PATH = Path("baselines/file.json")
STATIC = canonical_bytes(merge_static(None, "sm_90", [(NVRTC, make_key(), make_static())]))
TIME = canonical_bytes(merge_time(None, H200, [(make_key(), make_time(make_session()))], [make_session()]))
SAMPLES = [(STATIC, "sm_90"), (TIME, H200)]


def problem(content: bytes, target: str = H200) -> str:
    with pytest.raises(UnreadableBaselineError) as caught:
        decode(content, PATH, target)
    message = str(caught.value)
    assert message.startswith("baselines/file.json: this baseline cannot be read: ")
    assert message.endswith("or delete it and record it again with --update-baselines.")
    return caught.value.problem


def changed(path: list[str | int], value: Any, content: bytes = TIME) -> bytes:
    tree = json.loads(content)
    place = tree
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(tree).encode()


USE: list[str | int] = ["tests", "test_transpose", "", "padded"]
ROUNDS: list[str | int] = [*USE, "rounds", make_session().id]
CODE: list[str | int] = ["codes", "transpose_padded"]

# --- anything at all -----------------------------------------------------------------------------


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_never_another_exception(content: bytes) -> None:
    with pytest.raises(BaselineError):
        decode(content, PATH, H200)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(json_values)
def test_arbitrary_json_is_never_another_exception(value: Any) -> None:
    with pytest.raises(BaselineError):
        decode(json.dumps(value).encode(), PATH, H200)


@given(st.dictionaries(st.sampled_from(["kind", "target", "sessions", "tests", "toolchains", "x"]), json_values))
def test_arbitrary_fields_are_never_another_exception(fields: dict[str, Any]) -> None:
    tree = {"schema": SCHEMA_VERSION, "kind": "time", "target": H200, **fields}
    for target in (H200, "sm_90"):
        with contextlib.suppress(BaselineError):
            decode(json.dumps(tree).encode(), PATH, target)


@given(st.sampled_from([0, 1]), st.data())
@settings(max_examples=300)
def test_any_value_anywhere_in_a_valid_file_is_never_another_exception(which: int, data: st.DataObject) -> None:
    content, target = SAMPLES[which]
    tree = place = json.loads(content)
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], (dict, list)) or not place[key] or data.draw(st.integers(0, 4)) == 0:
            place[key] = data.draw(json_values)
            break
        place = place[key]
    with contextlib.suppress(BaselineError):
        decode(json.dumps(tree).encode(), PATH, target)


@pytest.mark.parametrize(("content", "target"), SAMPLES, ids=["static", "time"])
def test_every_truncation_is_refused(content: bytes, target: str) -> None:
    for length in range(len(content) - 1):
        with pytest.raises(UnreadableBaselineError):
            decode(content[:length], PATH, target)
    assert decode(content[:-1], PATH, target) == decode(content, PATH, target)


@pytest.mark.parametrize(("content", "target"), SAMPLES, ids=["static", "time"])
def test_every_bit_flip_is_read_or_refused(content: bytes, target: str) -> None:
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 1 << (position % 8)
        with contextlib.suppress(BaselineError):
            decode(bytes(flipped), PATH, target)


# --- each hazard by name -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"{", "line 1, column 2"),
        (b'{"schema": 1,\n "kind" 5}', "line 2, column 9"),
        (b"[]", "no JSON object"),
        (b"null", "no JSON object"),
        (b"\xff\xfe{}", "not UTF-8 (byte 0)"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b'{"schema": 1, "schema": 1}', "the key 'schema' appears twice"),
        (b'{"schema": NaN}', "it holds NaN"),
        (b'{"schema": -Infinity}', "it holds -Infinity"),
        (b'{"schema": 1e999}', "the number 1e999 is out of range"),
        (b'{"schema": 1' + b"0" * 5000 + b"}", "an integer of 5001 characters"),
        (b'{"schema": 9999999999999999999}', "beyond 64 bits"),
        (b"{}", "its schema version is missing"),
        (b'{"schema": true}', "its schema version is 'True'"),
        (b'{"schema": "1"}', "its schema version is '1', not a whole number"),
        (b'{"schema": [1]}', "its schema version is not text"),
        (b'{"schema": -3}', "version is -3, and this pytest-gpuperf reads"),
        (b'<<<<<<< HEAD\n{"schema": 1}\n=======\n', "line 1 is an unresolved merge conflict"),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else None,
)
def test_malformed_content_is_named(content: bytes, words: str) -> None:
    assert words in problem(content)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (["target"], "nvidia-a100", "its target is 'nvidia-a100', but lies in the folder of 'nvidia-h200'"),
        (["target"], None, "its target is missing"),
        (["target"], ["x"], "its target is not text"),
        (["kind"], "static", "its kind is 'static', and in the folder of 'nvidia-h200' must be 'time'"),
        (["kind"], "evil\x1b[2J", r"the text 'evil\x1b[2J' with control characters"),
        (["tests"], [], "Expected `object`, got `array` - at `$.tests`"),
        (["surprise"], 1, "unknown field `surprise`"),
        ([*ROUNDS, "midmeans", 0], "fast", "Expected `float`, got `str`"),
        ([*ROUNDS, "midmeans", 0], 0, "a time is outside"),
        ([*ROUNDS, "midmeans", 0], 1e300, "a time is outside"),
        ([*ROUNDS, "midmeans"], 1.5, "Expected `array`, got `float`"),
        ([*ROUNDS, "sm_clock_mhz"], [[1980, 1980]] * 5, "2 rounds and 5 clocks"),
        ([*ROUNDS, "sm_clock_mhz"], [[1980, 1.5]], "Expected `int`, got `float`"),
        ([*ROUNDS, "sm_clock_mhz"], [[1980, True]], "Expected `int`, got `bool`"),
        ([*ROUNDS, "sm_clock_mhz"], [[1980]], "length 2"),
        ([*USE, "rounds", "gone"], {"midmeans": [5.0]}, "session 'gone', which is not in the file"),
        ([*USE, "code"], "gone", "the workload 'padded' has the code 'gone', which is not in the file"),
        ([*USE, "counters"], {"a*": {"b": 1}, "ab": 2}, "the metric 'ab' appears twice"),
        ([*USE, "counters"], {"a": {"b": 1}}, "have no '*'"),
        (["tests", "test_transpose", "x"], {}, "which start with ["),
        (["tests", "test[x"], {"": {}}, "which start with ["),
        ([*CODE, "cubin"], "../../../../bin/sh", "not a SHA-256"),
        ([*CODE, "kernel"], "\x1b]0;owned", "control characters"),
        (["tests", "\x1b[31m"], {}, "control characters"),
        (["tests", "a\ud800"], {}, "control characters"),
    ],
)
def test_hostile_fields_are_named(path: list[str | int], value: Any, words: str) -> None:
    content = changed(path, value)
    found = problem(content)
    assert words in found
    assert "\x1b" not in found


def test_two_sessions_of_one_id_are_refused() -> None:
    tree = json.loads(TIME)
    tree["sessions"] *= 2
    assert "two sessions have the same id" in problem(json.dumps(tree).encode())


def test_a_long_hostile_text_is_shortened() -> None:
    assert len(problem(changed(["kind"], "x" * 100_000))) < 500


# --- the folder ----------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "baselines"


def test_a_link_out_of_the_folder_is_not_followed(root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_bytes(STATIC)
    (root / "sm_90/example_suite").mkdir(parents=True)
    (root / "sm_90/example_suite/test_transpose.json").symlink_to(secret)
    store = BaselineStore(root)
    for attempt in (
        lambda: store.static("sm_90", make_key(), NVRTC),
        lambda: store.write(static_update(make_static(40))),
        lambda: store.keys("sm_90"),
    ):
        with pytest.raises(UnsafePathError, match="outside the baseline folder: remove the link"):
            attempt()
    assert secret.read_bytes() == STATIC


def test_a_linked_folder_is_not_written_through(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    root.mkdir()
    (root / "cubins").symlink_to(outside)
    with pytest.raises(UnsafePathError, match="outside the baseline folder"):
        BaselineStore(root).write(time_update(make_session()))
    assert list(outside.iterdir()) == []


BIG = Path("/usr")
"""A folder whose files take long to be looked through."""
LONGEST_S = 1.0


@pytest.mark.parametrize("place", ["", "sm_90", H200, "cubins", "cubins/ab", ".work"])
def test_a_link_to_a_big_folder_is_refused_before_it_is_walked(root: Path, place: str) -> None:
    link = root / place if place else root
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(BIG)
    store = BaselineStore(root)
    ways = {
        "list": store.archs, "keys": lambda: store.keys(H200 if place == H200 else "sm_90"),
        "cubins": lambda: stored_cubins(root),
        "diff": lambda: OnDisk(root, "sha1"), "write": lambda: store.write(static_update(make_static(40))),
    }  # fmt: skip
    refused = {}
    began = time.perf_counter()
    for name, way in ways.items():
        try:
            way()
        except UnsafePathError as error:
            refused[name] = str(error)
    assert time.perf_counter() - began < LONGEST_S
    assert list(refused) == REFUSED.get(place, list(ways))
    assert all(str(link) in message and "is a link" in message for message in refused.values())


REFUSED = {
    "sm_90": ["list", "keys", "diff", "write"], H200: ["list", "keys", "diff", "write"],
    "cubins": ["cubins"], "cubins/ab": ["cubins"], ".work": ["write"],
}  # fmt: skip
"""What has to do with a place; the folder itself is refused to all."""


def test_a_link_to_a_big_folder_below_a_target_is_not_followed(root: Path) -> None:
    (root / "sm_90").mkdir(parents=True)
    (root / "sm_90" / "test_x").symlink_to(BIG)
    began = time.perf_counter()
    assert BaselineStore(root).archs() == ()
    assert time.perf_counter() - began < LONGEST_S
    with pytest.raises(UnsafePathError, match="outside the baseline folder"):
        BaselineStore(root).write(static_update(make_static(40), key=make_key(module="test_x/test_y.py")))


def test_a_folder_that_is_reached_through_a_link_is_read(root: Path, tmp_path: Path) -> None:
    BaselineStore(root).write(static_update(make_static(40)))
    (tmp_path / "alias").symlink_to(tmp_path)
    assert BaselineStore(tmp_path / "alias" / "baselines").archs() == ("sm_90",)


def test_a_loop_of_links_is_an_unreadable_baseline(root: Path) -> None:
    (root / "sm_90").mkdir(parents=True)
    (root / "sm_90/test_x.json").symlink_to("test_x.json")
    with pytest.raises(BaselineError, match=r"test_x\.json"):
        BaselineStore(root).static("sm_90", make_key(module="test_x.py"), NVRTC)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_does_not_block(root: Path) -> None:
    (root / "sm_90").mkdir(parents=True)
    os.mkfifo(root / "sm_90/test_x.json")
    with pytest.raises(UnreadableBaselineError, match="not a regular file"):
        BaselineStore(root).static("sm_90", make_key(module="test_x.py"), NVRTC)


def test_a_folder_in_place_of_a_file_is_named(root: Path) -> None:
    (root / "sm_90/test_x.json").mkdir(parents=True)
    with pytest.raises(UnreadableBaselineError, match="not a regular file"):
        BaselineStore(root).static("sm_90", make_key(module="test_x.py"), NVRTC)


def test_a_file_in_place_of_the_folder_is_named(root: Path) -> None:
    root.write_bytes(b"")
    store = BaselineStore(root)
    with pytest.raises(UnreadableBaselineError, match="Not a directory"):
        store.static("sm_90", make_key(), NVRTC)
    with pytest.raises(UnreadableBaselineError, match="cannot be listed"):
        store.archs()


def test_a_damaged_file_is_never_overwritten(root: Path) -> None:
    store = BaselineStore(root)
    [file] = store.write(static_update())
    file.write_bytes(STATIC[:100])
    with pytest.raises(UnreadableBaselineError, match="delete it and record it again"):
        store.write(static_update(make_static(40)))
    assert file.read_bytes() == STATIC[:100]


# --- what a reader would take much time or memory for -------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a":[' + b"[]," * 500_000 + b"0]}", "it has more than 280000 objects"),
        (b'{"a":{' + b'"k":0,' * 700_000 + b'"k":0}}', "it has more than 700000 keys"),
        (b'{"a":[' + b"0," * 1_000_001 + b"0]}", "it has more than 1000000 values"),
        (b'{"a":{' + b",".join(b'"%020x":0' % n for n in range(100_001)) + b"}}", "one object has 100001 keys"),
        (b"{" + b"\n" * 100_000 + b"<<<<<<< HEAD\n", "line 100001 is an unresolved merge conflict"),
    ],
    ids=["objects", "keys", "values", "one object", "lines"],
)
def test_more_than_any_module_has_is_refused(content: bytes, words: str) -> None:
    assert words in problem(content)


@pytest.mark.parametrize(
    "path", [["surprise"], ["kind"], ["sessions", 0, "gpu"], [*USE, "launch"], [*ROUNDS, "midmeans"], ["tests", "x"]]
)
@pytest.mark.parametrize("value", ["\ud800", {"\ud800": 1}, {"\udfff": {"x": {}}}, ["a\udc00"]], ids=repr)
def test_lone_surrogates_are_refused_wherever_they_are(path: list[str | int], value: Any) -> None:
    found = problem(changed(path, value))
    assert found.isprintable()


def test_a_lone_surrogate_as_a_key_twice_is_refused() -> None:
    assert problem(b'{"\\ud800": 1, "\\ud800": 1}') == r"the key '\ud800' appears twice in one object"


def test_reading_leaves_the_collector_as_it_was() -> None:
    for was in (True, False):
        (gc.enable if was else gc.disable)()
        try:
            decode(TIME, PATH, H200)
            assert gc.isenabled() is was
        finally:
            gc.enable()
