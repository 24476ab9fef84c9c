"""The manifest: which targets a folder of baselines has to have, and how it comes and goes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from baseline_samples import make_key, make_session, static_update, time_update

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.store import BaselineStore, Update


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with static evidence for sm_90 and times of an H200."""
    folder = tmp_path / "baselines"
    BaselineStore(folder).write(static_update())
    BaselineStore(folder).write(time_update(make_session()))
    return folder


def named(root: Path) -> tuple[str, ...]:
    found = BaselineStore(root).manifest()
    return found.targets if found else ()


def test_an_update_names_its_targets_and_keeps_those_that_are_gone(root: Path) -> None:
    assert (root / manifest.FILE).read_text() == (
        '{\n  "architectures": [\n    "sm_90"\n  ],\n  "gpu_models": [\n    "nvidia-h200"\n  ],\n'
        '  "schema": 2,\n  "toolchains": [\n    "nvrtc 13.0.88"\n  ]\n}\n'
    )
    (root / manifest.FILE).unlink()
    assert named(root) == ()
    BaselineStore(root).write(static_update(toolchain="unknown"))
    assert named(root) == ("sm_90", "nvidia-h200")
    assert '"unknown"' not in (root / manifest.FILE).read_text()
    shutil.rmtree(root / "sm_90")
    BaselineStore(root).write(time_update(make_session()))
    assert set(named(root)) - set(BaselineStore(root).targets()) == {"sm_90"}


def test_an_update_of_nothing_makes_no_folder(tmp_path: Path) -> None:
    BaselineStore(tmp_path / "baselines").write(Update())
    assert not (tmp_path / "baselines").exists()


def test_an_architecture_that_no_run_was_asked_for_is_that_of_kernels_until_one_is(root: Path) -> None:
    def told(asked: tuple[str, ...] | None, arch: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        store = BaselineStore(root)
        (record,) = static_update().static.values()
        store.write(Update(static={(arch, "nvrtc 13.0.88", make_key()): record}, asked=asked))
        found = BaselineStore(root).manifest()
        assert found is not None
        return found.named_by_kernels, store.archs_asked()

    assert told(("sm_90",), "sm_90") == ((), ("sm_90",))
    assert told(("sm_90",), "sm_80") == (("sm_80",), ("sm_90",))
    assert told(("sm_120", "sm_90"), "sm_120") == (("sm_80",), ("sm_90", "sm_120"))
    assert told(("sm_80",), "sm_80") == ((), ("sm_80", "sm_90", "sm_120"))
    assert told(None, "sm_75") == ((), ("sm_75", "sm_80", "sm_90", "sm_120"))


def test_where_kernels_name_every_architecture_all_are_asked_for(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path / "baselines")
    store.write(Update(static=static_update().static, asked=("sm_80",)))
    assert store.archs_asked() == ("sm_90",)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "Input data was truncated"), ('{"schema": 1}', "missing required field"),
        ('{"schema": 3, "targets": []}', "its schema is 3, and this pytest-gpuperf reads 2"),
        ('{"schema": 1, "architectures": ["../x"], "gpu_models": []}', "'../x' is no architecture, GPU model"),
        ('{"schema": 1, "architectures": [], "gpu_models": ["sm_90"]}', "'sm_90' is no architecture, GPU model"),
        ('{"schema": 2, "architectures": [], "gpu_models": [], "toolchains": ["a\\u001b 1"]}', "is no arch"),
        (" " * (manifest.MAX_BYTES + 1), "it is larger than 1 MB"), ("<<<<<<< HEAD\n{}", "unresolved merge conflict"),
        ('{"schema": 1, "x": ' + "[" * 5000, "manifest.json: this baseline cannot be read"),
    ],
)  # fmt: skip
def test_one_that_cannot_be_understood_is_refused_and_not_overwritten(root: Path, content: str, problem: str) -> None:
    (root / manifest.FILE).write_text(content)
    with pytest.raises(BaselineError, match=r"manifest\.json: this baseline cannot be read") as raised:
        BaselineStore(root).write(static_update())
    assert problem in str(raised.value)
    assert (root / manifest.FILE).read_text() == content
    assert BaselineStore(root).archs_asked() == ("sm_90",)
