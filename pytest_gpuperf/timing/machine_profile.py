"""Results of ``gpuperf selftest`` about this machine's GPUs, kept for later runs.

One JSON file for all GPUs of a user: ``$GPUPERF_MACHINE_PROFILE``, else ``pytest-gpuperf/machine.json`` in the
user's configuration folder.  The gate takes ``omega`` from it, for a test that can pass a kernel and fail none.  The
file is data from outside: its size, form and range are checked.

Schema 1: ``{"schema": 1, "profiles": {<GPU UUID>: MachineProfile}}``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import filelock
import msgspec

from pytest_gpuperf.atomic_write import write_durably
from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.timer_names import TimerName

SCHEMA = 1
LARGEST_BYTES = 1 << 20
LOCK_WAIT_S = 10.0

Share = Annotated[float, msgspec.Meta(ge=0, le=0.2)]
"""A relative standard deviation; more than 20 % is no measurement."""


class ProfileError(Exception):
    """The file of machine profiles cannot be used; the message says what to do."""


class MachineProfile(Record, frozen=True):
    """One GPU as the self-test found it.  Standard deviations are of log times, so about relative."""

    uuid: str
    gpu: str
    date: str
    """UTC, ISO 8601."""
    driver: str
    timer: TimerName
    tick_ns: Annotated[float, msgspec.Meta(gt=0, le=1e7)]
    overhead_ns: float
    omega: Annotated[float, msgspec.Meta(gt=0, le=0.2)]
    """Spread between recordings in different processes: an upper 90 % bound over all kernels tried."""
    round_sd: Share
    """Between rounds of one process, over all kernels tried."""
    block_sd: Share
    """Standard deviation of a paired block's log ratio at the ``tight`` profile, over all kernels tried."""
    placement_sd: Share
    """Between processes, of the log ratio of a kernel to itself in another module."""
    plugin: str
    """Version that measured."""


class _Schema(msgspec.Struct):
    schema: int


class _Document(_Schema, forbid_unknown_fields=True):
    profiles: dict[str, MachineProfile]


def profile_path() -> Path:
    """The file of this user's machine profiles."""
    own = os.environ.get("GPUPERF_MACHINE_PROFILE")
    folder = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if not folder.is_absolute():  # which the XDG base directory specification ignores
        folder = Path("~/.config").expanduser()
    return Path(own) if own else folder / "pytest-gpuperf" / "machine.json"


def load_profile(uuid: str, path: Path | None = None) -> MachineProfile | None:
    """The profile of the GPU with this UUID; None if the self-test was never run on it.  Raises ``ProfileError``."""
    return _read(profile_path() if path is None else path).get(uuid)


def omega_of(uuid: str, timer: TimerName) -> float | None:
    """Spread between recordings on this GPU by this timer; None if it was not measured.  Raises ``ProfileError``."""
    profile = load_profile(uuid)
    return profile.omega if profile is not None and profile.timer == timer else None


def save_profile(profile: MachineProfile, path: Path | None = None) -> Path:
    """Keep a profile in the place of an older one of the same GPU; returns the file.  Raises ``ProfileError``."""
    file = profile_path() if path is None else path
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{file}.lock", timeout=LOCK_WAIT_S):
            profiles = {**_read(file), profile.uuid: profile}
            document = _Document(schema=SCHEMA, profiles=dict(sorted(profiles.items())))
            write_durably(file, msgspec.json.format(msgspec.json.encode(document)) + b"\n")
    except (OSError, filelock.Timeout) as problem:
        raise ProfileError(
            f"{file} cannot be written ({problem}): make its folder writable, or name another file in "
            f"GPUPERF_MACHINE_PROFILE"
        ) from problem
    return file


def _read(file: Path) -> dict[str, MachineProfile]:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        return {}
    except OSError as problem:
        raise ProfileError(f"{file} cannot be read ({problem}); {_REMEDY}") from problem
    if len(content) > LARGEST_BYTES:
        raise ProfileError(f"{file} is larger than {LARGEST_BYTES} bytes, so it holds no machine profiles; {_REMEDY}")
    try:
        version = msgspec.json.decode(content, type=_Schema).schema
        if version > SCHEMA:
            raise ProfileError(
                f"{file} was written by a newer gpuperf (schema {version}, this one reads {SCHEMA}); {_REMEDY}"
            )
        found = msgspec.json.decode(content, type=_Document).profiles
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise ProfileError(f"{file} holds no machine profiles ({problem}); {_REMEDY}") from problem
    strangers = [uuid for uuid, profile in found.items() if profile.uuid != uuid]
    if strangers:
        raise ProfileError(f"{file} has the profile of another GPU under {strangers[0]!r}; {_REMEDY}")
    return found


_REMEDY = "delete it and run gpuperf selftest, or name another file in GPUPERF_MACHINE_PROFILE"
