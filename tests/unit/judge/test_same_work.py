"""What made a time differ, in words: the source, the compiler, the launch, the arguments or none of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pytest_gpuperf.judge.same_work import explain, other_arguments
from pytest_gpuperf.model.time_record import Identity

NEW, OLDER, NEWER = "nvrtc 13.0.88", "nvrtc 12.9.41", "nvrtc 13.2.51"
OLD = Identity(code="aa", launch="grid=1", arguments=("float32[8] align=256", "int32=7"), source="s", toolchain=NEW)
CONFIGURED = msgspec.structs.replace(OLD, config="BLOCK=64")


@pytest.mark.parametrize(("changes", "words"), [
    ({}, "the machine code is that of the baseline: a difference in time comes from the environment"),
    ({"launch": "grid=2"}, "the machine code is that of the baseline; the launch changed from grid=1 to grid=2"),
    ({"arguments": ("float32[8] align=16", "int32=8")},
     "the machine code is that of the baseline; argument 2 was int32=7 and is int32=8"),
    ({"code": "bb", "source": "t"}, "the source and its machine code changed"),
    ({"code": "bb", "source": ""}, "the machine code changed"),
    ({"code": "bb"}, "the source is that of the baseline, the machine code is not"),
    ({"code": "bb", "toolchain": OLDER},
     "the source is that of the baseline; the compiler changed from nvrtc 13.0.88 to nvrtc 12.9.41"),
    ({"code": "bb", "source": "t", "toolchain": NEWER},
     "the source and its machine code changed; the compiler changed from nvrtc 13.0.88 to nvrtc 13.2.51"),
    ({"code": "bb", "source": "", "toolchain": ""},
     "the machine code changed; the compiler changed from nvrtc 13.0.88 to unknown"),
    ({"code": "bb", "source": "t", "config": "BLOCK=32"},
     "the configuration was BLOCK=64 and is BLOCK=32; the machine code changed"),
    ({"code": "bb", "source": "t", "launch": "grid=2"},
     "the source and its machine code changed; the launch changed from grid=1 to grid=2"),
])  # fmt: skip
def test_what_differs_is_said(changes: dict[str, Any], words: str) -> None:
    old = CONFIGURED if "config" in changes else OLD
    assert explain(old, msgspec.structs.replace(old, **changes)) == words


def test_two_unknown_compilers_are_no_change() -> None:
    old = msgspec.structs.replace(OLD, toolchain="unknown")
    assert explain(old, msgspec.structs.replace(old, code="bb", source="", toolchain="")) == "the machine code changed"


def test_more_arguments_are_counted_and_alignments_are_none() -> None:
    assert other_arguments(OLD, msgspec.structs.replace(OLD, arguments=("int32=7",))) == ("2 arguments became 1",)
    assert other_arguments(OLD, msgspec.structs.replace(OLD, arguments=("float32[8]", "int32=7"))) == ()
