"""docs/reference/report.schema.json: the JSON schema of what ``--gpuperf-report=FILE.json`` writes."""

from __future__ import annotations

import json

import msgspec

from pytest_gpuperf.report.document import RunReport


def page() -> str:
    """The schema, as it is published."""
    schema = msgspec.json.schema(RunReport)
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=1) + "\n"
