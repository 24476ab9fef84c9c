"""Targets and modules to paths: nothing leaves the folder, nothing gets a name that some system cannot store."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from baseline_samples import NVRTC, make_key, make_static, static_update
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.baselines.baseline_errors import BaselineError, UnreadableBaselineError, UnsafePathError
from pytest_gpuperf.baselines.layout import (
    arch_order,
    cubin_path,
    evidence_files,
    evidence_path,
    inside,
    is_arch,
    is_device,
    module_file,
    module_of,
    targets,
)
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore


def test_a_module_names_its_file() -> None:
    assert module_file("a/b/test_x.py") == PurePosixPath("a/b/test_x.json")
    assert module_file("test_x.v2.py") == PurePosixPath("test_x.v2.json")
    assert module_of(PurePosixPath("test_x.v2.json")) == "test_x.v2.py"
    assert module_file("MAX/test_x.py") == PurePosixPath("MAX/test_x.json")


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


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (
            "",
            "test module '' cannot name a baseline file: it lies outside of pytest's root directory. Start pytest in a "
            "folder above it, or name one with --rootdir.",
        ),
        ("a/test_x.txt", "test module 'a/test_x.txt': baselines belong to Python test files (.py)"),
        ("a/.py", "test module 'a/.py': baselines belong to Python test files (.py)"),
        *(
            (
                module,
                f"test module '{shown}' cannot name a baseline file: {problem}. Baselines need test files below "
                "pytest's root directory (--rootdir) with portable names.",
            )
            for module, shown, problem in [
                ("/test_x.py", "/test_x.py", "it is absolute, or has an empty, '.' or '..' part"),
                ("a/../test_x.py", "a/../test_x.py", "it is absolute, or has an empty, '.' or '..' part"),
                ("./test_x.py", "./test_x.py", "it is absolute, or has an empty, '.' or '..' part"),
                ("a/test\nx.py", "a/test\\nx.py", 'it has a control character or one of <>:"|?*\\'),
                ("a:b/test_x.py", "a:b/test_x.py", 'it has a control character or one of <>:"|?*\\'),
                ("a/NUL.b.py", "a/NUL.b.py", "'NUL.b.py' is reserved on Windows"),
                ("a./test_x.py", "a./test_x.py", "'a.' is reserved on Windows"),
                ("a /test_x.py", "a /test_x.py", "'a ' is reserved on Windows"),
            ]
        ),
    ],
)
def test_a_module_that_can_have_no_file_is_told_why(module: str, words: str) -> None:
    with pytest.raises(UnsafePathError) as caught:
        module_file(module)
    assert str(caught.value) == words


def test_a_target_that_is_none_is_told_what_one_looks_like(tmp_path: Path) -> None:
    with pytest.raises(UnsafePathError) as caught:
        evidence_path(tmp_path, "H\n200", "test_x.py")
    assert str(caught.value) == (
        "'H\\n200' is no baseline target: expected an architecture such as sm_90 or a GPU model such as nvidia-h200"
    )


def test_evidence_and_cubins_have_their_places(tmp_path: Path) -> None:
    assert evidence_path(tmp_path, "sm_90", "a/test_x.py") == tmp_path / "sm_90/a/test_x.json"
    assert cubin_path(tmp_path, "3f" * 32) == tmp_path / "cubins/3f" / f"{'3f' * 32}.cubin.z"


def test_a_link_out_of_the_folder_is_named_with_its_target(tmp_path: Path) -> None:
    root = tmp_path / "baselines"
    root.mkdir()
    link = root / "link"
    link.symlink_to(tmp_path / ("x" * 250))
    with pytest.raises(UnsafePathError) as caught:
        inside(root, link)
    target = str(tmp_path.resolve() / ("x" * 250))
    assert str(caught.value) == (f"{link} is a link to {target[:197]}..., outside the baseline folder: remove the link")
    link.unlink()
    link.symlink_to(root / "elsewhere")
    assert inside(root, link) == link


def test_a_path_that_cannot_be_followed_is_an_unreadable_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.resolve

    def looping(path: Path, strict: bool = False) -> Path:
        if path.name == "loop":
            raise RuntimeError("Symlink loop")
        return real(path, strict)

    monkeypatch.setattr(Path, "resolve", looping)
    with pytest.raises(UnreadableBaselineError) as caught:
        inside(tmp_path, tmp_path / "loop")
    assert str(caught.value).startswith(
        f"{tmp_path}/loop: this baseline cannot be read: its path cannot be followed (Symlink loop).\n"
    )


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path) -> None:
    (tmp_path / "baselines").write_bytes(b"")
    with pytest.raises(UnreadableBaselineError) as caught:
        targets(tmp_path / "baselines")
    assert str(caught.value).startswith(
        f"{tmp_path}/baselines: this baseline cannot be read: the folder cannot be listed (Not a directory).\n"
    )


def test_targets_are_architectures_by_number_then_gpu_models_by_name(tmp_path: Path) -> None:
    for target in ("sm_120", "sm_90", "sm_100f", "nvidia-h200", "nvidia-a100", "cubins", "empty", "Notes"):
        (tmp_path / target / "a").mkdir(parents=True)
        if target != "empty":
            (tmp_path / target / "a/test_x.json").touch()
    (tmp_path / "sm_80").touch()
    assert targets(tmp_path) == ("sm_90", "sm_100f", "sm_120", "nvidia-a100", "nvidia-h200")
    assert sorted(["sm_90a", "sm_120", "sm_90"], key=arch_order) == ["sm_90", "sm_90a", "sm_120"]


def test_evidence_files_are_those_at_their_place_sorted(tmp_path: Path) -> None:
    for name in ("test_b.json", "a/test_c.json", "test_a.json", "a/notes.txt"):
        (tmp_path / "sm_90" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sm_90" / name).touch()
    assert list(evidence_files(tmp_path, "sm_90")) == [
        ("a/test_c.py", tmp_path / "sm_90/a/test_c.json"),
        ("test_a.py", tmp_path / "sm_90/test_a.json"),
        ("test_b.py", tmp_path / "sm_90/test_b.json"),
    ]
    assert list(evidence_files(tmp_path, "sm_80")) == []
