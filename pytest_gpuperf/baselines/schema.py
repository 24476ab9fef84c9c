"""The JSON Schema of the evidence files, generated from their types.

``python -m pytest_gpuperf.baselines.schema`` rewrites ``schema.json``, which ships with the package for editors and
other tools; a test compares it with the types.  It may be told another file.  Its history is in ``schema_version``.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

import msgspec

from pytest_gpuperf.baselines.document_types import Document
from pytest_gpuperf.baselines.schema_version import SCHEMA_VERSION

SCHEMA_PATH = Path(__file__).with_name("schema.json")


def json_schema() -> str:
    """JSON Schema (draft 2020-12) of both kinds of file, as text with a trailing newline."""
    schema = msgspec.json.schema(Document)
    for name in ("StaticDocument", "TimeDocument"):
        schema["$defs"][name]["properties"]["schema"] = {"const": SCHEMA_VERSION}
    for definition in schema["$defs"].values():
        definition["description"] = inspect.cleandoc(definition["description"])  # Python 3.13 does so itself
        for one in definition["properties"].values():
            one.get("anyOf", []).sort(key=json.dumps)  # msgspec 0.19 names null first
    header = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"pytest-gpuperf baseline, schema version {SCHEMA_VERSION}",
    }
    return json.dumps({**header, **schema}, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else SCHEMA_PATH
    target.write_text(json_schema(), encoding="utf-8")
