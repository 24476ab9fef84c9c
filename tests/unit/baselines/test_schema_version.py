"""A layout of the baseline files never changes without a new version: every version's schema is on record here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pytest_gpuperf.baselines.migrations import SCHEMA_VERSION
from pytest_gpuperf.baselines.schema import SCHEMA_PATH

RECORDED: Mapping[int, str] = {
    1: "d4988f8f0e2989002d27021d3369a5702b78d337a1bb9c2dded838ac166dd9f0",
    2: "85a82bbbca07f5f61a3e669e79d064f9a2628ebe1acb51a176a90f2924d2fb1d",
    3: "82b3f62dccfbb52c1299eca6859a41304838f4cda5b127614e11db4211eadad9",
    4: "cd6c3f8a32f34e5a39e9384aa4981af845c36fe32f9aa1ae4f5107b4caf6384a",
    5: "f9986f3e0cc64d48e2ccf33f23d62bbb618f07540f50da6962535cfb8e5f595e",
    6: "3405f52e22a592d8a83cfa712886943566050552131818f2f79639e3ea808fed",
}
"""SHA-256 of ``schema.json`` by version, its prose apart.  A line once merged stays as it is."""


def digest(schema: Any) -> str:
    """SHA-256 of what the schema demands: its descriptions are dropped, and its keys are sorted."""
    text = json.dumps(_without_prose(schema), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _without_prose(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_prose(one) for one in part]
    if not isinstance(part, dict):
        return part
    kept = {key: one for key, one in part.items() if key != "description" or not isinstance(one, str)}
    return {key: _without_prose(one) for key, one in kept.items()}


def problem(schema: Any, version: int, recorded: Mapping[int, str] = RECORDED) -> str | None:
    """Says what to do where the schema is not the one on record for its version; None where it is."""
    found = digest(schema)
    if recorded.get(version) == found:
        return None
    if version in recorded:
        return (
            f"schema.json is not that of version {version}: raise SCHEMA_VERSION in baselines/migrations.py to "
            f"{max(recorded) + 1}, with a line of history and a step in MIGRATIONS; "
            f"then run python -m pytest_gpuperf.baselines.schema, and this test says what to append"
        )
    return f'append to RECORDED in {__file__}:\n    {version}: "{found}",'


def shipped() -> Any:
    return json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))


def test_the_schema_is_the_one_on_record_for_its_version() -> None:
    found = problem(shipped(), SCHEMA_VERSION)
    assert found is None, found
    assert list(RECORDED) == list(range(1, SCHEMA_VERSION + 1))


def test_a_changed_schema_without_a_raised_version_is_told_to_raise_it() -> None:
    schema = shipped()
    schema["$defs"]["SessionRounds"]["properties"]["new"] = {"type": "number"}
    assert "raise SCHEMA_VERSION" in str(problem(schema, SCHEMA_VERSION))
    del schema["$defs"]["SessionRounds"]["properties"]["new"]
    schema["$defs"]["SessionRounds"]["required"].remove("midmeans")
    assert "raise SCHEMA_VERSION" in str(problem(schema, SCHEMA_VERSION))


def test_a_raised_version_is_told_which_line_to_append() -> None:
    schema = shipped()
    assert f'2: "{digest(schema)}",' in str(problem(schema, 2, {1: "0" * 64}))


def test_other_words_are_no_other_schema() -> None:
    schema = shipped()
    schema["$defs"]["SessionRounds"]["description"] = "Said otherwise."
    schema["$defs"]["SessionRounds"]["properties"]["description"] = {"type": "string"}
    assert digest(schema) != digest(shipped())
    del schema["$defs"]["SessionRounds"]["properties"]["description"]
    assert digest(schema) == digest(shipped())
