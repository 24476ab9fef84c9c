"""Targets and modules to paths: nothing leaves the folder, nothing gets a name that some system cannot store."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from baseline_samples import NVRTC, make_key, make_static, static_update
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.baselines import BaselineError, BaselineStore, UnsafePathError, Update
from pytest_gpuperf.baselines.layout import evidence_path, is_arch, is_device, module_file, module_of


def test_a_module_names_its_file() -> None:
    assert module_file("a/b/test_x.py") == PurePosixPath("a/b/test_x.json")
    assert module_file("test_x.v2.py") == PurePosixPath("test_x.v2.json")
    assert module_of(PurePosixPath("test_x.v2.json")) == "test_x.v2.py"


@pytest.mark.parametrize(
    "module",
    [
        "", ".py", "a/.py", "test_x.txt", "/etc/test_x.py", "../test_x.py", "a/../../test_x.py", "./test_x.py",
        "a//test_x.py", "C:/test_x.py", "C:test_x.py", "a\\..\\test_x.py", "\\\\host\\share\\test_x.py",
        "test\0x.py", "test\nx.py", "test_\ud800.py", "con.py", "NUL.tar.py", "a/com1/test_x.py", "lpt9.py",
        "a./test_x.py", "a /test_x.py", "test?.py", "test*.py", "a|b.py", "a:stream.py",
    ],
)  # fmt: skip
def test_a_path_that_could_escape_or_not_be_stored_is_refused(tmp_path: Path, module: str) -> None:
    store = BaselineStore(tmp_path / "baselines")
    key = make_key(module=module)
    with pytest.raises(UnsafePathError, match="test module '"):
        store.static("sm_90", key, NVRTC)
    with pytest.raises(UnsafePathError, match="test module '"):
        store.write(static_update(key=key))
    assert list(tmp_path.iterdir()) == []


def test_a_test_file_outside_of_the_root_says_what_to_do() -> None:
    with pytest.raises(UnsafePathError, match="outside of pytest's root directory"):
        module_file("")


@given(st.text(max_size=30))
def test_no_module_leads_out_of_the_folder(module: str) -> None:
    root = Path("/nowhere/baselines")
    try:
        path = evidence_path(root, "sm_90", module + ".py")
    except BaselineError:
        return
    assert path.is_relative_to(root / "sm_90")
    assert ".." not in path.parts
    assert module_of(PurePosixPath(path.relative_to(root / "sm_90").as_posix())) == module + ".py"


@pytest.mark.parametrize(
    "target", ["", "..", "cubins", "SM_90", "sm_9", "sm_90x", "sm_90/..", "a/b", "nul", "a.", "H200"]
)
def test_other_targets_are_refused(tmp_path: Path, target: str) -> None:
    assert not is_arch(target)
    assert not is_device(target)
    with pytest.raises(UnsafePathError, match="is no baseline target"):
        BaselineStore(tmp_path).write(Update(static={(target, NVRTC, make_key()): make_static()}))
    assert list(tmp_path.iterdir()) == []


def test_architectures_and_gpu_models_are_told_apart() -> None:
    assert all(is_arch(target) and not is_device(target) for target in ("sm_75", "sm_90a", "sm_120f"))
    assert all(is_device(target) and not is_arch(target) for target in ("nvidia-h200", "nvidia-rtx-a6000", "x"))


def test_stray_files_and_folders_are_no_baselines(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    store.write(static_update())
    for name in ("README.json", "Notes/test_x.json", "sm_90/notes.txt", "sm_90/.json", "sm_80/readme.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("hello")
    assert store.archs() == ("sm_90",)
    assert store.devices() == ()
    assert store.keys("sm_90") == (make_key(),)
