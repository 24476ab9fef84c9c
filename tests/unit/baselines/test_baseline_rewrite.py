"""A whole folder is written as an update would write it today; and when a module was written last."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from baseline_samples import CUBIN, H200, make_key, make_session, make_static, make_time, static_update, time_update

from pytest_gpuperf.baselines import layout
from pytest_gpuperf.baselines.cubin_store import compressed, stored_cubins
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.rewrite import rewrite, size_of
from pytest_gpuperf.baselines.store import BaselineStore


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    made = BaselineStore(tmp_path / "baselines")
    made.write(static_update())
    made.write(time_update(make_session(), make_time(make_session(), counters={"dram__bytes.sum": 123456.0})))
    return made


def test_what_is_written_as_today_stays(store: BaselineStore) -> None:
    assert rewrite(store) == []


def test_an_older_file_is_written_anew_with_the_same_evidence(store: BaselineStore) -> None:
    paths = [path for target in store.targets() for _, path in layout.evidence_files(store.root, target)]
    before = {path: path.read_bytes() for path in paths}
    assert len(paths) == 2
    for path in paths:
        path.write_bytes(before[path] + b"\n")
    store.forget()
    assert sorted(rewrite(store)) == sorted(paths)
    assert {path: path.read_bytes() for path in paths} == before


def test_a_cubin_that_was_kept_plain_is_compressed(store: BaselineStore) -> None:
    (packed,) = stored_cubins(store.root)
    sha256 = make_time(make_session()).cubin
    plain = packed.with_name(packed.name.removesuffix("".join(packed.suffixes)) + layout.PLAIN)
    packed.unlink()
    plain.write_bytes(CUBIN)
    store.forget()
    assert rewrite(store) == [packed] == [layout.cubin_path(store.root, sha256)]
    assert packed.read_bytes() == compressed(CUBIN)
    assert not plain.exists()
    assert store.cubin(sha256) == CUBIN


def test_counters_have_the_digits_of_today(store: BaselineStore) -> None:
    path = layout.evidence_path(store.root, H200, make_key().module)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("123456", "123456.78901234567"), encoding="utf-8")
    store.forget()
    assert rewrite(store) == [path]
    assert path.read_text(encoding="utf-8") == text.replace("123456", "123456.789")


def test_the_size_is_that_of_all_files(store: BaselineStore) -> None:
    folder = store.root
    assert size_of(folder) == sum(path.stat().st_size for path in folder.glob("**/*") if path.is_file()) > 0
    (folder / "sm_90" / "more.bin").write_bytes(bytes(1000))
    before = size_of(folder)
    (folder / "sm_90" / "more.bin").unlink()
    assert before - size_of(folder) == 1000


def test_a_file_that_was_written_since_a_moment_is_told_by_its_module(store: BaselineStore) -> None:
    module = make_key().module
    paths = [layout.evidence_path(store.root, target, module) for target in store.targets()]
    first, last = sorted(path.stat().st_ctime for path in paths)
    assert store.written_since(first - 1, module) in paths
    assert store.written_since(last, module) is None
    assert store.written_since(first - 1, "other/test_it.py") is None
    time.sleep(0.02)
    moment = time.time()
    time.sleep(0.02)
    store.write(Update(static={("sm_90", "nvrtc 13.0.88", make_key("test_new")): make_static(40)}))
    assert store.written_since(moment, module) == layout.evidence_path(store.root, "sm_90", module)
