"""The schema's version, what becomes of older files, and the JSON Schema that ships with the package."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from baseline_samples import NVRTC, make_key, static_update

from pytest_gpuperf.baselines import schema_version
from pytest_gpuperf.baselines.baseline_errors import UnreadableBaselineError
from pytest_gpuperf.baselines.schema import SCHEMA_PATH, json_schema
from pytest_gpuperf.baselines.schema_version import SCHEMA_VERSION
from pytest_gpuperf.baselines.store import BaselineStore


@pytest.mark.parametrize("version", [-1, 0, SCHEMA_VERSION - 1])
def test_an_older_file_is_refused(tmp_path: Path, version: int) -> None:
    store = BaselineStore(tmp_path)
    [file] = store.write(static_update())
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "schema": version}))
    store.forget()
    with pytest.raises(UnreadableBaselineError, match=rf"version is {version}, and (?s:.*)--update-base"):
        store.static("sm_90", make_key(), NVRTC)


def test_every_version_has_a_line_of_history() -> None:
    history = re.findall(r"^(\d+)   ", schema_version.__doc__ or "", re.MULTILINE)
    assert history[0] == str(SCHEMA_VERSION)


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
