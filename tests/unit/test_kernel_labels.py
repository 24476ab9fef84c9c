"""What kernels of one name in one test are called."""

from __future__ import annotations

import pytest
from record_samples import profile_of

from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.test_record import TestRecord, UnlaunchedKernel, labelled


def compiled(code: str, *options: str, file: str = "work.cu", name: str = "work", source: str = "") -> UnlaunchedKernel:
    record = StaticRecord(kernel=name, source_hash=source, profile=profile_of(code_hash=code * 64))
    return UnlaunchedKernel(name, {"sm_90": record}, "nvrtc 13.0.88", options, file)


def names(*kernels: UnlaunchedKernel, taken: tuple[str, ...] = ()) -> list[str]:
    return [name for name, _ in labelled(kernels, kernels, taken)]


@pytest.mark.parametrize(("kernels", "called"), [
    ([compiled("a", "-DTILE=32")], ["work"]),
    ([compiled("a"), compiled("b", name="other")], ["work", "other"]),
    ([compiled("a", "-I.", "-DTILE=32"), compiled("b", "-I.", "-DTILE=64")],
     ["work [-DTILE=32]", "work [-DTILE=64]"]),
    ([compiled("a"), compiled("b", "-use_fast_math", "-lineinfo")], ["work", "work [-use_fast_math -lineinfo]"]),
    ([compiled("a"), compiled("b", file="tiled.cu")], ["work [work.cu]", "work [tiled.cu]"]),
    ([compiled("a", "-DX"), compiled("a", "-DX")], ["work"]),
    ([compiled("a", source="s"), compiled("b", source="s")], ["work"]),  # a source may compile to several
])  # fmt: skip
def test_kernels_have_names_that_tell_them_apart(kernels: list[UnlaunchedKernel], called: list[str]) -> None:
    assert names(*kernels) == called


def test_a_kernel_beside_a_callable_of_its_name_says_so() -> None:
    assert names(compiled("a"), taken=("work",)) == ["work [kernel]"]


def test_kernels_that_nothing_tells_apart_are_numbered() -> None:
    test = TestRecord("test_a.py::test_a")
    test.kernels += [compiled("a"), compiled("b"), compiled("c")]
    assert [one.key.workload for one in test.unlaunched()] == ["work", "work [2]", "work [3]"]


def test_another_compiler_makes_another_kernel() -> None:
    one = compiled("a")
    assert one.is_another(one.static, "ptxas 13.0.88")
    assert not one.is_another(one.static, "nvrtc 13.0.88")
    assert not one.is_another({"sm_80": compiled("b").static["sm_90"]}, "nvrtc 13.0.88")
