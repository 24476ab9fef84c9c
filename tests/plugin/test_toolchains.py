"""A team with several compilers: what one has accepted is red for nobody, and what nobody accepted is for all."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from evidence_tree import read_evidence, write_evidence
from suite_under_test import HOG

from pytest_gpuperf.compile.version import toolchain

ARCH = "--gpuperf-arch=sm_90"
GATE = ("--gpuperf", ARCH, "--gpuperf-open=fail")
OTHER = "nvrtc 12.9.86"
TEST = """
def test_hog(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("hog.cu", "hog", options=[])
    a, b = gpu.random(4096, seed=1), gpu.empty(32)
    gpuperf(kernel.launch(grid=1, block=32, args=(a, b)))
"""


def evidence(suite) -> Path:
    return Path(suite.path, "baselines/sm_90/test_suite.jsonl")


def declare(suite, *names: str) -> None:
    path = suite.path / "baselines/manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "toolchains": sorted(names)}))


def spill(suite) -> None:
    suite.edit("test_suite.py", "options=[]", 'options=["-maxrregcount=32"]')


@pytest.fixture
def records(suite):
    """What the compiler at hand has on record of the kernel before it spills, and after that was accepted."""
    suite.write("hog.cu", HOG)
    suite.write("test_suite.py", TEST)
    suite.run("--update-baselines", ARCH)
    before = read_evidence(evidence(suite))["toolchains"][toolchain()]
    spill(suite)
    suite.run("--update-baselines", ARCH)
    after = read_evidence(evidence(suite))["toolchains"][toolchain()]
    assert before != after
    return before, after


def on_record(suite, **tests) -> None:
    tree = read_evidence(evidence(suite))
    names = {"own": toolchain(), "other": OTHER}
    tree["toolchains"] = {names[which]: copy.deepcopy(records) for which, records in tests.items()}
    write_evidence(evidence(suite), tree)
    declare(suite, OTHER, toolchain())


def test_what_another_compiler_accepted_passes_with_one_line(suite, records):
    before, after = records
    on_record(suite, own=before, other=after)
    gated = suite.run(*GATE)
    assert gated.ret == 0
    gated.stdout.fnmatch_lines([
        "  hog *ACCEPTED-ELSEWHERE",
        f"1 workload ACCEPTED-ELSEWHERE on sm_90: its source is on record as accepted under {OTHER}, and the record of "
        f"{toolchain()} is older: bring it up to date with pytest --update-baselines",
    ])  # fmt: skip
    suite.run("--update-baselines", ARCH)
    assert read_evidence(evidence(suite))["toolchains"][toolchain()] == after
    assert "ACCEPTED" not in suite.run(*GATE).stdout.str()


def test_a_compiler_without_a_record_goes_by_that_of_another(suite, records):
    _, after = records
    on_record(suite, other=after)
    gated = suite.run(*GATE)
    assert gated.ret == 0
    gated.stdout.fnmatch_lines([f"*ACCEPTED-ELSEWHERE*under {OTHER}, and there is no record of {toolchain()} yet: *"])


def test_a_comment_later_it_is_still_accepted(suite, records):
    before, after = records
    on_record(suite, own=before, other=after)
    suite.edit("hog.cu", "    float arr[64];", "    // sixty-four of them\n    float arr[64];")
    assert suite.run(*GATE).ret == 0


def test_what_nobody_accepted_is_red(suite, records):
    before, _ = records
    on_record(suite, own=before, other=before)
    gated = suite.run(*GATE)
    gated.assert_outcomes(failed=1)
    gated.stdout.fnmatch_lines(["hog  WORSE *"])


def test_what_is_made_worse_after_the_acceptance_is_red(suite, records):
    before, after = records
    on_record(suite, own=before, other=after)
    suite.edit("hog.cu", "r * 0.25f", "r * 0.125f")
    suite.run(*GATE).assert_outcomes(failed=1)


def test_a_compiler_that_is_not_declared_accepts_nothing(suite, records):
    before, after = records
    on_record(suite, own=before, other=after)
    declare(suite, toolchain())
    suite.run(*GATE).assert_outcomes(failed=1)
    declare(suite, OTHER)
    suite.run(*GATE).assert_outcomes(failed=1)


def test_a_record_of_this_very_source_is_not_excused_by_another(suite, records):
    """As if headers of the toolkit had made worse code of an accepted source."""
    before, after = records
    own = copy.deepcopy(before)
    own["test_hog"]["hog"]["source_hash"] = after["test_hog"]["hog"]["source_hash"]
    on_record(suite, own=own, other=after)
    suite.run(*GATE).assert_outcomes(failed=1)


def test_another_launch_than_was_accepted_is_red(suite, records):
    before, after = records
    on_record(suite, own=before, other=after)
    suite.edit("test_suite.py", "block=32", "block=64")
    suite.run(*GATE).assert_outcomes(failed=1)


def test_an_update_says_which_compilers_are_behind_now(suite, records):
    before, _ = records
    on_record(suite, own=before, other=before)
    updated = suite.run("--update-baselines", ARCH)
    updated.stdout.fnmatch_lines([
        "1 baseline written",
        f"{OTHER}: 1 workload is behind now, on record with an older source or not at all. Update with it too: pip "
        f"install --target nvrtcs/12.9.86 nvidia-cuda-nvrtc==12.9.86, then pytest --update-baselines "
        f"--gpuperf-toolchains=nvrtcs",
    ])  # fmt: skip


def test_folders_without_a_compiler_are_refused_by_name(suite):
    (suite.path / "empty").mkdir()
    found = suite.run("--gpuperf", "--gpuperf-nvrtc=empty")
    assert found.ret == 4
    found.stderr.fnmatch_lines(["*--gpuperf-nvrtc: *empty holds 0 versions of NVRTC, not one: fill an empty folder*"])
    found = suite.run("--gpuperf", "--gpuperf-nvrtc=gone")
    assert found.ret == 4
    found.stderr.fnmatch_lines(["*--gpuperf-nvrtc: there is no folder *gone*"])
    found = suite.run("--update-baselines", "--gpuperf-toolchains=gone")
    assert found.ret == 4
