"""Records of a compiler that the team no longer declares are pruned, with the machine code that they alone name."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import msgspec
import pytest
from baseline_samples import H200, NVRTC, make_key, make_session, make_static, time_update

from pytest_gpuperf.baselines import layout, manifest
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.prune import Unused, prune, unused
from pytest_gpuperf.baselines.store import BaselineStore

OLD = "nvrtc 12.9.86"
KEY, OTHER = make_key(), make_key("test_other", module="suite/test_other.py")
CUBIN = b"cubin of the old compiler"


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    """One module with records of two compilers, another with those of the old one, of which the manifest knows not."""
    made = BaselineStore(tmp_path / "baselines")
    old = msgspec.structs.replace(make_static(), cubin=hashlib.sha256(CUBIN).hexdigest())
    static = {("sm_90", NVRTC, KEY): make_static(), ("sm_90", OLD, KEY): old, ("sm_90", OLD, OTHER): old}
    made.write(Update(static=static, cubins=[CUBIN]))
    made.write(time_update(make_session()))
    file = made.root / manifest.FILE
    tree = json.loads(file.read_text())
    file.write_text(json.dumps({**tree, "toolchains": [NVRTC]}))
    made.forget()
    return made


def found(store: BaselineStore) -> list[Unused]:
    return unused(store, [], modules_collected=[])


def test_records_of_a_compiler_that_is_not_declared_are_unused(store: BaselineStore) -> None:
    paths = {key: layout.evidence_path(store.root, "sm_90", key.module) for key in (KEY, OTHER)}
    cubin = layout.cubin_path(store.root, hashlib.sha256(CUBIN).hexdigest())
    assert found(store) == [
        Unused("cubin", cubin),
        Unused("toolchain", paths[KEY], "sm_90", KEY.module, toolchain=OLD),
        Unused("toolchain", paths[OTHER], "sm_90", OTHER.module, toolchain=OLD),
    ]
    assert str(found(store)[1]) == (f"sm_90: records of {OLD}, which the manifest does not declare (in {paths[KEY]})")


def test_they_are_taken_away_and_those_of_others_stay(store: BaselineStore) -> None:
    gone = found(store)
    assert sorted(prune(store, gone)) == gone
    assert store.static("sm_90", KEY, NVRTC).record == make_static()
    assert store.static("sm_90", KEY, OLD).record is None
    assert store.time(H200, KEY) is not None
    assert not layout.evidence_path(store.root, "sm_90", OTHER.module).exists()
    assert found(store) == []
    assert prune(store, gone) == []


def test_a_compiler_that_nobody_can_declare_stays(store: BaselineStore) -> None:
    store.write(Update(static={("sm_90", "", KEY): make_static(40)}))
    tree = json.loads((store.root / manifest.FILE).read_text())
    (store.root / manifest.FILE).write_text(json.dumps({**tree, "toolchains": [NVRTC]}))
    assert {one.toolchain for one in found(store) if one.kind == "toolchain"} == {OLD}


def test_what_went_meanwhile_is_not_told_as_removed(store: BaselineStore) -> None:
    store.write(Update(static={("sm_90", "nvrtc 11.8.89", KEY): make_static(40)}))
    tree = json.loads((store.root / manifest.FILE).read_text())
    (store.root / manifest.FILE).write_text(json.dumps({**tree, "toolchains": [NVRTC]}))
    first, second = (one for one in found(store) if one.module == KEY.module)
    assert prune(store, [first]) == [first]
    assert prune(store, [first, second]) == [second]
