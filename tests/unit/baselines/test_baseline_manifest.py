"""The manifest: which targets a folder of baselines has to have, and how it comes and goes."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from baseline_samples import make_key, make_session, static_update, time_update

from pytest_gpuperf.baselines import manifest, transaction
from pytest_gpuperf.baselines.baseline_errors import NewerSchemaError, UnreadableBaselineError, UnwritableEvidenceError
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.prune import prune, unused
from pytest_gpuperf.baselines.store import BaselineStore


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with static evidence for sm_90 and times of an H200."""
    folder = tmp_path / "baselines"
    BaselineStore(folder).write(static_update())
    BaselineStore(folder).write(time_update(make_session()))
    return folder


def named(root: Path) -> tuple[str, ...]:
    found = manifest.read(root)
    return found.targets if found else ()


def test_an_update_names_its_targets(root: Path) -> None:
    assert (root / manifest.FILE).read_text() == (
        '{\n  "architectures": [\n    "sm_90"\n  ],\n  "gpu_models": [\n    "nvidia-h200"\n  ],\n'
        '  "schema": 2,\n  "toolchains": [\n    "nvrtc 13.0.88"\n  ]\n}\n'
    )


def test_an_update_without_news_leaves_it_alone(root: Path) -> None:
    before = (root / manifest.FILE).stat().st_mtime_ns
    BaselineStore(root).write(static_update())
    assert (root / manifest.FILE).stat().st_mtime_ns == before


def test_a_folder_from_before_manifests_gets_all_of_its_targets_named(root: Path) -> None:
    (root / manifest.FILE).unlink()
    assert manifest.gone(root) == ()
    BaselineStore(root).write(static_update())
    assert named(root) == ("sm_90", "nvidia-h200")


def test_an_update_of_nothing_makes_no_folder(tmp_path: Path) -> None:
    BaselineStore(tmp_path / "baselines").write(Update())
    assert not (tmp_path / "baselines").exists()


def without_records(root: Path, target: str) -> str:
    return f"{target}: named in {root / manifest.FILE}, and has no records: they were deleted, or are still to come"


def test_a_target_that_was_never_recorded_is_not_called_gone(root: Path) -> None:
    transaction.write_all(root, manifest.with_targets(root, ["sm_100"]))
    found = [entry for entry in unused(BaselineStore(root), [], modules_collected=[]) if entry.kind == "target"]
    assert [str(entry) for entry in found] == [without_records(root, "sm_100")]


def test_a_removed_folder_is_missed_until_it_is_pruned(root: Path) -> None:
    shutil.rmtree(root / "sm_90")
    store = BaselineStore(root)
    assert manifest.gone(root) == ("sm_90",)
    store.write(time_update(make_session()))
    assert manifest.gone(root) == ("sm_90",)
    found = [entry for entry in unused(store, [], modules_collected=[]) if entry.kind == "target"]
    assert [str(entry) for entry in found] == [without_records(root, "sm_90")]
    assert prune(store, found) == found
    assert (manifest.gone(root), named(root)) == ((), ("nvidia-h200",))


def test_a_target_whose_last_file_is_pruned_is_not_missed(root: Path) -> None:
    store = BaselineStore(root)
    static = [entry for entry in unused(store, [], modules_collected=[make_key().module]) if entry.target == "sm_90"]
    assert prune(store, static) == static
    assert named(root) == ("nvidia-h200",)


def test_what_came_back_in_between_stays_named(root: Path) -> None:
    shutil.move(root / "sm_90", root.parent / "away")
    store = BaselineStore(root)
    found = [entry for entry in unused(store, [], modules_collected=[]) if entry.kind == "target"]
    shutil.move(root.parent / "away", root / "sm_90")
    assert prune(store, found) == []
    assert named(root) == ("sm_90", "nvidia-h200")


def test_an_architecture_that_no_run_was_asked_for_is_that_of_kernels_that_name_it_until_one_is(root: Path) -> None:
    def told(asked: tuple[str, ...] | None, arch: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        store = BaselineStore(root)
        (record,) = static_update().static.values()
        store.write(Update(static={(arch, "nvrtc 13.0.88", make_key()): record}, asked=asked))
        store.forget()
        found = manifest.read(root)
        assert found is not None
        return found.named_by_kernels, store.archs_asked()

    assert told(("sm_90",), "sm_90") == ((), ("sm_90",))
    assert told(("sm_90",), "sm_80") == (("sm_80",), ("sm_90",))
    assert told(("sm_120", "sm_90"), "sm_120") == (("sm_80",), ("sm_90", "sm_120"))
    assert told(("sm_120",), "sm_90") == (("sm_80",), ("sm_90", "sm_120"))  # known, if not asked for this time
    assert told(("sm_80",), "sm_80") == ((), ("sm_80", "sm_90", "sm_120"))
    assert told(None, "sm_75") == ((), ("sm_75", "sm_80", "sm_90", "sm_120"))


def test_where_kernels_name_every_architecture_all_are_asked_for(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path / "baselines")
    assert store.archs_asked() == ()
    (place,), (record,) = static_update().static, static_update().static.values()
    store.write(Update(static={place: record}, asked=("sm_80",)))
    store.forget()
    found = manifest.read(store.root)
    assert found is not None
    assert (found.named_by_kernels, store.archs_asked()) == (("sm_90",), ("sm_90",))


def test_of_one_that_cannot_be_read_every_architecture_on_record_is_asked_for(root: Path) -> None:
    (root / manifest.FILE).write_text('{"named_by_kernels": ["sm_90"]')
    assert BaselineStore(root).archs_asked() == ("sm_90",)


def test_one_that_is_taken_off_is_named_by_no_kernel_either(root: Path) -> None:
    written = {**json.loads((root / manifest.FILE).read_text()), "named_by_kernels": ["sm_90"]}
    (root / manifest.FILE).write_text(json.dumps(written))
    ((_, content),) = manifest.without_targets(root, ["sm_90"])
    assert "sm_90" not in content.decode()
    ((_, content),) = manifest.with_targets(root, ["sm_90"])
    assert "named_by_kernels" not in content.decode()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "Input data was truncated"),
        ('{"schema": 1}', "missing required field"),
        ('{"schema": 1, "architectures": ["../x"], "gpu_models": []}', "'../x' is no architecture or GPU model"),
        ('{"schema": 1, "architectures": [], "gpu_models": ["sm_90"]}', "'sm_90' is no architecture or GPU model"),
        (
            '{"schema": 2, "architectures": [], "gpu_models": [], "named_by_kernels": ["../x"]}',
            "'../x' is no architecture",
        ),
        ("<<<<<<< HEAD\n{}", "git checkout --theirs"),
    ],
)
def test_one_that_cannot_be_understood_is_refused_and_not_overwritten(root: Path, content: str, problem: str) -> None:
    (root / manifest.FILE).write_text(content)
    with pytest.raises(UnreadableBaselineError, match=r"manifest\.json: this baseline cannot be read") as raised:
        BaselineStore(root).write(static_update())
    assert problem in str(raised.value)
    assert (root / manifest.FILE).read_text() == content


def test_a_newer_one_is_refused(root: Path) -> None:
    (root / manifest.FILE).write_text(json.dumps({"schema": 3, "targets": []}))
    with pytest.raises(NewerSchemaError, match="schema version 3"):
        manifest.gone(root)


def test_a_refused_update_leaves_no_target_behind(root: Path) -> None:
    bad = time_update(make_session())
    with pytest.raises(UnwritableEvidenceError):
        BaselineStore(root).write(Update(time={("other-gpu", key): one for (_, key), one in bad.time.items()}))
    assert named(root) == ("sm_90", "nvidia-h200")


@pytest.mark.parametrize("inside", ["[" * 5000, "[" * 5000 + "]" * 5000, '{"a":' * 5000])
def test_a_manifest_that_is_nested_too_deeply_is_refused(tmp_path: Path, inside: str) -> None:
    (tmp_path / "manifest.json").write_text(f'{{"schema": 1, "x": {inside}}}', encoding="utf-8")
    why = "malformed|unknown field" if sys.version_info >= (3, 14) else "it is nested too deeply"  # by its stack's size
    with pytest.raises(UnreadableBaselineError, match=why):
        manifest.read(tmp_path)
