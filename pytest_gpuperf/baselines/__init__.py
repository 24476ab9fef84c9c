"""Committed evidence: baseline files with the store of their cubins.

``docs/explanation/baselines.md`` describes the format for people.  Nothing here measures, judges or decides what to
accept.
"""

from pytest_gpuperf.baselines.baseline_errors import (
    BaselineError,
    BaselineLockedError,
    BaselineLockError,
    BaselineWriteError,
    CubinError,
    NewerSchemaError,
    UnreadableBaselineError,
    UnsafePathError,
    UnwritableEvidenceError,
)
from pytest_gpuperf.baselines.merging import KEPT_SESSIONS, Update
from pytest_gpuperf.baselines.migrations import SCHEMA_VERSION
from pytest_gpuperf.baselines.store import BaselineStore, StaticLookup
from pytest_gpuperf.baselines.transaction import WrittenFile

__all__ = [
    "KEPT_SESSIONS",
    "SCHEMA_VERSION",
    "BaselineError",
    "BaselineLockError",
    "BaselineLockedError",
    "BaselineStore",
    "BaselineWriteError",
    "CubinError",
    "NewerSchemaError",
    "StaticLookup",
    "UnreadableBaselineError",
    "UnsafePathError",
    "UnwritableEvidenceError",
    "Update",
    "WrittenFile",
]
