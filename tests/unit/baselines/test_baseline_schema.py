"""The schema's version, how older files are read, and the JSON Schema that ships with the package."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from baseline_samples import H200, NVRTC, make_key, make_session, make_static, static_update, time_update

from pytest_gpuperf.baselines import migrations
from pytest_gpuperf.baselines.baseline_errors import UnreadableBaselineError
from pytest_gpuperf.baselines.migrations import MIGRATIONS, SCHEMA_VERSION, migrate
from pytest_gpuperf.baselines.schema import SCHEMA_PATH, json_schema
from pytest_gpuperf.baselines.store import BaselineStore


def as_version_3(store: BaselineStore, path: Path, target: str) -> dict[str, Any]:
    """The tree of a file as version 3 laid it out: what is in memory, with all that it had of a round."""
    file = store.load(target, make_key().module)
    assert file is not None
    tree: dict[str, Any] = {**msgspec.to_builtins(file), "schema": 3}
    for workloads in tree.get("tests", {}).values():
        for record in workloads.values():
            for entry in record["rounds"]:
                entry.update(samples=30, median=1.0, quantiles=[1.0] * 5, minimum=1.0, maximum=1.0, rho1=0.1)
    path.write_text(json.dumps(tree))
    return tree


def as_version_0(store: BaselineStore, path: Path, target: str) -> bytes:
    tree = as_version_3(store, path, target)
    del tree["kind"]
    path.write_text(json.dumps({**tree, "schema": 0}))
    return path.read_bytes()


@pytest.mark.parametrize("older", [as_version_0, as_version_3])
def test_files_of_older_layouts_are_read(tmp_path: Path, older: Callable[[BaselineStore, Path, str], object]) -> None:
    store = BaselineStore(tmp_path)
    static, *_, timed = store.write(static_update()) + store.write(time_update(make_session()))
    before = store.load(H200, make_key().module)
    for file, target in ((static, "sm_90"), (timed, H200)):
        older(store, file, target)
    store.forget()
    assert store.static("sm_90", make_key(), NVRTC).record == make_static()
    assert store.load(H200, make_key().module) == before


ESTIMATE = {"executed": {"fp32": 20.0}, "cycles": 712, "accesses": [{"op": "global_load", "bytes": 4, "times": 1}]}


def test_files_with_estimates_are_read_without_them(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    [file] = store.write(static_update())
    tree = as_version_3(store, file, "sm_90")
    [record] = [
        record for tests in tree["toolchains"].values() for workloads in tests.values() for record in workloads.values()
    ]
    record["profile"]["dry_run"] = ESTIMATE
    file.write_text(json.dumps({**tree, "schema": 1}))
    store.forget()
    assert store.static("sm_90", make_key(), NVRTC).record == make_static()


@pytest.mark.parametrize(
    "damage", [{"sessions": 5}, {"tests": {"a": {"b": []}}}, {"tests": {"a": {"b": {"rounds": 7}}}}]
)
def test_a_damaged_file_of_an_older_layout_is_refused(tmp_path: Path, damage: dict[str, Any]) -> None:
    store = BaselineStore(tmp_path)
    path = store.write(time_update(make_session()))[-1]
    tree = as_version_3(store, path, H200)
    path.write_text(json.dumps({**tree, **damage}))
    store.forget()
    with pytest.raises(UnreadableBaselineError):
        store.load(H200, make_key().module)


def test_an_older_file_is_rewritten_only_when_its_content_changes(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    [file] = store.write(static_update())
    old = as_version_0(store, file, "sm_90")
    assert store.write(static_update()) == []
    assert file.read_bytes() == old
    store.write(static_update(make_static(40)))
    assert json.loads(file.read_bytes())["schema"] == SCHEMA_VERSION
    assert json.loads(file.read_bytes())["kind"] == "static"


def test_migration_takes_one_step_per_version() -> None:
    steps = {3: lambda raw: {**raw, "three": raw["schema"]}, 4: lambda raw: {**raw, "four": raw["schema"]}}
    assert migrate({"schema": 3}, steps=steps, current=5) == {"schema": 5, "three": 3, "four": 4}
    assert migrate({"schema": 5}, steps=steps, current=5) == {"schema": 5}
    with pytest.raises(LookupError):
        migrate({"schema": 2}, steps=steps, current=5)


def test_every_version_has_a_step_and_a_line_of_history() -> None:
    assert set(MIGRATIONS) == set(range(SCHEMA_VERSION))
    assert migrations.__doc__ is not None
    history = [int(number) for number in re.findall(r"^(\d+)   ", migrations.__doc__, re.MULTILINE)]
    assert history == list(range(SCHEMA_VERSION, -1, -1))


def test_the_shipped_json_schema_is_current() -> None:
    assert SCHEMA_PATH.read_text(encoding="utf-8") == json_schema(), (
        "the evidence types changed: run python -m pytest_gpuperf.baselines.schema, and think about SCHEMA_VERSION"
    )


def test_the_json_schema_describes_both_kinds() -> None:
    definitions = json.loads(json_schema())["$defs"]
    assert definitions["StaticDocument"]["properties"]["kind"] == {"enum": ["static"]}
    assert definitions["TimeDocument"]["properties"]["schema"] == {"const": SCHEMA_VERSION}
    assert "midmeans" in definitions["SessionRounds"]["required"]


def test_the_generator_writes_what_is_shipped(tmp_path: Path) -> None:
    """Into a file of this test: others read the shipped one meanwhile."""
    command = [sys.executable, "-m", "pytest_gpuperf.baselines.schema", str(tmp_path / "schema.json")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stderr == ""
    assert (tmp_path / "schema.json").read_bytes() == SCHEMA_PATH.read_bytes()
