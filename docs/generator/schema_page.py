"""docs/reference/report.schema.json: the JSON schema of what ``--gpuperf-report=FILE.json`` writes."""

from __future__ import annotations

import inspect
import json

import msgspec

from pytest_gpuperf.report.document import RunReport


def page() -> str:
    """The schema, as it is published."""
    schema = msgspec.json.schema(RunReport)
    for one in schema["$defs"].values():
        if "description" in one:  # Python 3.13 and later take the indentation away themselves
            one["description"] = inspect.cleandoc(one["description"])
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=1) + "\n"
