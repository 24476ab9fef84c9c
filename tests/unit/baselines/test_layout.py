"""Targets and modules to paths: nothing leaves the folder, nothing gets a name that some system cannot store."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.layout import (
    arch_order,
    cubin_named,
    cubin_path,
    is_arch,
    is_device,
    place_of,
    record_file,
    target_order,
)

ODD_MODULES = (
    "", ".py", "a/.py", "test_x.txt", "/etc/test_x.py", "../test_x.py", "a/../../test_x.py", "./test_x.py",
    "a//test_x.py", "C:/test_x.py", "C:test_x.py", "a\\..\\test_x.py", "\\\\host\\share\\test_x.py",
    "test\0x.py", "test\nx.py", "test_\ud800.py", "test?.py", "test*.py", "a|b.py", "a:stream.py",
)  # fmt: skip
ODD_TARGETS = ("", "..", "cubins", "SM_90", "sm_9", "sm_90x", "sm_90/..", "a/b", "a.", "H200", "H\n200")


def test_records_and_cubins_have_their_places(tmp_path: Path) -> None:
    assert record_file("sm_90", "MAX/test_x.v2.py") == "sm_90/MAX/test_x.v2.jsonl"
    assert place_of("sm_90/MAX/test_x.v2.jsonl") == ("sm_90", "MAX/test_x.v2.py")
    cubin = cubin_path(tmp_path, "3f" * 32)
    assert cubin == tmp_path / "cubins" / f"{'3f' * 32}.cubin.z"
    odd = ("other/" + cubin.name, f"cubins/{'3f' * 32}", "cubins/3f.cubin.z", "cubins/README.md")
    assert [cubin_named(Path(path)) for path in (f"a/cubins/{cubin.name}", *odd)] == ["3f" * 32, "", "", "", ""]


def test_a_path_that_could_escape_or_not_be_stored_is_refused() -> None:
    for module in ODD_MODULES:
        with pytest.raises(BaselineError, match=r"cannot name a baseline file.* below pytest's root directory"):
            record_file("sm_90", module)
        assert place_of(f"sm_90/{module.removesuffix('.py')}.json") is None
    for target in ODD_TARGETS:
        assert not is_arch(target)
        assert not is_device(target)
        with pytest.raises(BaselineError, match="is no baseline target: expected an architecture such as sm_90"):
            record_file(target, "test_x.py")


@given(st.text(max_size=30))
def test_no_module_leads_out_of_the_folder(module: str) -> None:
    try:
        path = record_file("sm_90", f"{module}.py")
    except BaselineError:
        return
    assert ".." not in Path(path).parts
    assert place_of(path) == ("sm_90", f"{module}.py")


def test_architectures_and_gpu_models_are_told_apart() -> None:
    archs, models = ("sm_75", "sm_90a", "sm_120f"), ("nvidia-h200", "nvidia-rtx-a6000", "x")
    assert all(is_arch(target) and not is_device(target) for target in archs)
    assert all(is_device(target) and not is_arch(target) for target in models)
    assert sorted([*models, *reversed(archs)], key=target_order) == [*archs, *models]
    assert sorted(["sm_90a", "sm_120", "sm_90"], key=arch_order) == ["sm_90", "sm_90a", "sm_120"]
