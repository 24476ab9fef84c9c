"""Evidence files as trees of plain values, workload by workload as in memory, for tests that look or tamper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from pytest_gpuperf.baselines.documents import document_of
from pytest_gpuperf.baselines.file_types import StaticFile, TimeFile
from pytest_gpuperf.baselines.parsing import decode


def read_evidence(path: Path) -> dict[str, Any]:
    """``toolchains`` or ``tests`` by test and workload, each record with all of its own."""
    content = path.read_bytes()
    tree: dict[str, Any] = msgspec.to_builtins(decode(content, path, json.loads(content)["target"]))
    return tree


def write_evidence(path: Path, tree: dict[str, Any]) -> None:
    """The inverse; nothing is checked but the types."""
    file = msgspec.convert(tree, StaticFile if tree["kind"] == "static" else TimeFile)
    path.write_text(json.dumps(msgspec.to_builtins(document_of(file))), encoding="utf-8")
