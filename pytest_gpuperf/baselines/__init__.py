"""Committed evidence: reading, writing, migrating and pruning baseline files, and the store of their cubins.

``docs/baselines.md`` describes the format for people.  Nothing here measures, judges or decides what to accept.
"""

from pytest_gpuperf.baselines.atomic import WrittenFile
from pytest_gpuperf.baselines.errors import (
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
from pytest_gpuperf.baselines.store import BaselineStore, StaticLookup
from pytest_gpuperf.baselines.versions import SCHEMA_VERSION

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
