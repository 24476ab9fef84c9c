"""Options as users write them become one canonical list on top of CuPy's defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.compile.compile_errors import BadOption
from pytest_gpuperf.compile.nvrtc_options import (
    DEFAULTS,
    canonical_options,
    include_folders,
    pre_includes,
    unoptimised_by,
    without_paths,
)


def added(*given: str) -> tuple[str, ...]:
    return tuple(option for option in canonical_options(given) if option not in DEFAULTS)


def test_without_options_a_kernel_is_compiled_as_cupy_compiles_it() -> None:
    assert canonical_options(()) == ("--std=c++17", "--ftz=true", "--device-as-default-execution-space")


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        (["-DTILE=32"], "--define-macro=TILE=32"),
        (["-D", "TILE=32"], "--define-macro=TILE=32"),
        (["-D TILE=32"], "--define-macro=TILE=32"),
        (["--define-macro TILE=32"], "--define-macro=TILE=32"),
        (["-UTILE"], "--undefine-macro=TILE"),
        (["-I", "some folder"], "--include-path=some folder"),
        (["-I some/folder"], "--include-path=some/folder"),
        (["-Isome/folder"], "--include-path=some/folder"),
        (["-maxrregcount=32"], "--maxrregcount=32"),
        (["-maxrregcount 32"], "--maxrregcount=32"),
        (["--maxrregcount", "32"], "--maxrregcount=32"),
        (["-use_fast_math"], "--use_fast_math"),
        (["--fmad=false"], "--fmad=false"),
        (["-lineinfo"], "--generate-line-info"),
        (["-Xptxas", "-O1"], "--ptxas-options=-O1"),
        (["-Xptxas=-dlcm=ca"], "--ptxas-options=-dlcm=ca"),
        (["-G"], "--device-debug"),
        (["--something-new=7"], "--something-new=7"),
        (["-rdc=false"], "--relocatable-device-code=false"),
    ],
)
def test_each_way_of_writing_an_option_means_the_same(given: list[str], canonical: str) -> None:
    assert added(*given) == (canonical,)


def test_an_option_replaces_the_default_of_its_name() -> None:
    assert canonical_options(["-std=c++20", "-ftz=false"]) == (
        "--device-as-default-execution-space", "--std=c++20", "--ftz=false",
    )  # fmt: skip


def test_the_last_of_several_values_wins() -> None:
    assert added("-maxrregcount=16", "-maxrregcount=32") == ("--maxrregcount=32",)


def test_macros_and_folders_add_up_in_order() -> None:
    assert added("-DB", "-Iy", "-DA", "-Ix") == (
        "--define-macro=B", "--include-path=y", "--define-macro=A", "--include-path=x",
    )  # fmt: skip
    assert include_folders(canonical_options(["-Iy", "-Ix"])) == (Path("y"), Path("x"))


def test_a_folder_named_twice_is_searched_where_it_was_named_first() -> None:
    assert include_folders(canonical_options(["-Ia", "-Ib", "-I", "a"])) == (Path("a"), Path("b"))


def test_folders_are_no_part_of_what_two_machines_have_in_common() -> None:
    assert without_paths(canonical_options(["-I/home/me", "-DA"])) == (*DEFAULTS, "--define-macro=A")


def test_pre_included_headers_are_known() -> None:
    assert pre_includes(canonical_options(["-include", "first.h"])) == ("first.h",)


@pytest.mark.parametrize(
    "option",
    [
        "-arch=sm_80",
        "--gpu-architecture=compute_90",
        "-dlto",
        "-rdc=true",
        "-dc",
        "--pch",
        "--ptxas-options=--options-file=f",
    ],
)
def test_options_that_static_evidence_cannot_follow_are_refused_with_the_reason(option: str) -> None:
    with pytest.raises(BadOption, match=r"cannot be used here: \w+"):
        canonical_options([option])


@pytest.mark.parametrize("given", [["-D"], ["-maxrregcount"], ["-lineinfo", "-I"]])
def test_an_option_without_its_value_is_named(given: list[str]) -> None:
    with pytest.raises(BadOption, match=f"'{given[-1]}' needs a value"):
        canonical_options(given)


@pytest.mark.parametrize("given", ["TILE=32", "", "-"])
def test_what_is_no_option_is_refused(given: str) -> None:
    with pytest.raises(BadOption, match="compiler option"):
        canonical_options([given])


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ([], ""), (["-lineinfo"], ""), (["-maxrregcount=32"], ""), (["-Xptxas", "-O1"], ""), (["-O0"], ""),
        (["-G"], "-G"), (["--device-debug", "-lineinfo"], "-G"), (["-G", "--dopt=on"], ""), (["-G", "-dopt on"], ""),
        (["-Xptxas", "-O0"], "-Xptxas -O0"), (["--ptxas-options=-v -O0"], "-Xptxas -O0"),
        (["--ptxas-options=--opt-level=0"], "-Xptxas -O0"),
        (["--ptxas-options=--opt-level", "--ptxas-options=0"], "-Xptxas -O0"),
        (["-Xptxas=-O3", "-Xptxas=-O0"], "-Xptxas -O0"), (["-Xptxas=-O0", "-Xptxas=-O3"], ""),
        (["--Ofast-compile=max"], "--Ofast-compile=max"), (["-Ofc=min"], "--Ofast-compile=min"),
        (["--Ofast-compile=0"], ""), (["float32[::1]"], ""),
    ],
)  # fmt: skip
def test_options_that_keep_a_kernel_from_being_optimised_are_known(given: list[str], option: str) -> None:
    assert unoptimised_by(given) == option
