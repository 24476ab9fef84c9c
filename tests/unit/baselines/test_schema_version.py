"""A layout of the baseline files never changes without a new version: every version's schema is on record here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pytest_gpuperf.baselines.schema import SCHEMA_PATH
from pytest_gpuperf.baselines.schema_version import SCHEMA_VERSION

RECORDED: Mapping[int, str] = {
    6: "5b5638d97177bfe2c7e0b133bfc9bb83c3f678a3b9d669f2ac18b94d2d37a1cb",
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
            f"schema.json is not that of version {version}: raise SCHEMA_VERSION in baselines/schema_version.py to "
            f"{max(recorded) + 1}, with a line of history; "
            f"then run python -m pytest_gpuperf.baselines.schema, and this test says what to append"
        )
    return f'append to RECORDED in {__file__}:\n    {version}: "{found}",'


def shipped() -> Any:
    return json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))


def test_the_schema_is_the_one_on_record_for_its_version() -> None:
    found = problem(shipped(), SCHEMA_VERSION)
    assert found is None, found
    assert max(RECORDED) == SCHEMA_VERSION


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
