"""Options are passed as users write them; folders and headers in them are found, and some are refused."""

from __future__ import annotations

import pytest

from pytest_gpuperf.compile.compile_errors import BadOption
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import INCLUDE, KernelSource, values, without_folders

TEXT = 'extern "C" __global__ void work(float* x) { for (int i = 0; i < TILE; i++) x[i] *= 2; }'


def test_an_option_of_the_user_replaces_the_default_of_its_name() -> None:
    text = '#if __cplusplus < 202002L\n#error old\n#endif\nextern "C" __global__ void work(float* x) { x[0] = 1; }'
    assert compile_kernel(KernelSource(text, "work", options=("-std=c++20",)), "sm_90").symbol == "work"


@pytest.mark.parametrize(
    "given", [["-I", "a b"], ["-I a b"], ["-Ia b"], ["--include-path=a b"], ["--include-path", "a b"]]
)
def test_folders_are_found_and_no_part_of_what_two_machines_have_in_common(given: list[str]) -> None:
    assert values(INCLUDE, ["-DA", *given, "-DB"]) == ["a b"]
    assert without_folders(["-DA", *given, "-DB"]) == ["-DA", "-DB"]


@pytest.mark.parametrize(
    "option",
    [
        "-arch=sm_80", "-arch", "--gpu-architecture=compute_90", "-gencode=arch=compute_90,code=sm_90", "-dlto",
        "-rdc=true", "-dc", "--pch", "-o=x.cubin", "-optf=flags.txt",
    ],
)  # fmt: skip
def test_options_that_static_evidence_cannot_follow_are_refused_with_the_reason(option: str) -> None:
    with pytest.raises(BadOption, match=r"cannot be used here: \w+"):
        KernelSource("", "k", options=(option,)).check_options()


@pytest.mark.parametrize("option", ["-rdc=false", "-DARCH=3", "-DOPTF", "-G", "--something-new=7"])
def test_other_options_are_passed_on(option: str) -> None:
    KernelSource("", "k", options=(option,)).check_options()


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("-O3", "If it is one of nvcc: leave it out"), ("--extended-lambda", "If it is one of nvcc"),
        ("-isystem=folder", "If it is one of nvcc"),
    ],
)  # fmt: skip
def test_an_option_of_nvcc_is_told_by_name(option: str, told: str) -> None:
    with pytest.raises(BadOption, match=f"(?s)unrecognized option {option.partition('=')[0]}.*{told}"):
        compile_kernel(KernelSource(TEXT, "work", options=(option,)), "sm_90")
