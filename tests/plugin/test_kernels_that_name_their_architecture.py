"""A kernel with an ``arch=`` of its own: its record binds that kernel, and makes no other one be compiled for it."""

from __future__ import annotations

import json

import pytest

ARCHS = "--gpuperf-arch=sm_80,sm_90"
OWN_ARCH = """
def test_own(cuda_kernel):
    cuda_kernel("other.cu", "other", arch="sm_90a")
"""


@pytest.fixture
def recorded_for_two(suite):
    """Without a GPU: records of three workloads for sm_80 and sm_90, and of one for sm_90a."""
    suite.write("test_own.py", OWN_ARCH)
    assert suite.run("--update-baselines", ARCHS).ret == 0
    return suite


def modules_on_record(suite, arch):
    return sorted(file.name for file in (suite.path / "baselines" / arch).glob("*.jsonl"))


def test_its_record_is_that_architectures_alone_and_no_other_kernel_is_compiled_for_it(recorded_for_two):
    assert modules_on_record(recorded_for_two, "sm_90a") == ["test_own.jsonl"]
    assert modules_on_record(recorded_for_two, "sm_90") == ["test_suite.jsonl"]
    result = recorded_for_two.run("--gpuperf", "--gpuperf-open=fail")
    assert result.ret == 0, result.stdout.str()
    assert recorded_for_two.run("--update-baselines=all").ret == 0
    assert modules_on_record(recorded_for_two, "sm_90a") == ["test_own.jsonl"]


def test_a_change_of_it_and_its_going_are_seen(recorded_for_two):
    recorded_for_two.edit("other.cu", "a[i] * 2.0f", "a[i] * 2.0f + __shfl_sync(~0u, a[i], 3)")
    result = recorded_for_two.run("--gpuperf", "test_own.py")
    result.stdout.fnmatch_lines(["*sm_90a  verdict", "*other * SAME"])
    changed = '"work.cu", "work", options=["-DSTEPS=1"]'
    recorded_for_two.write("test_own.py", OWN_ARCH.replace('"other.cu", "other", arch="sm_90a"', changed))
    result = recorded_for_two.run("--gpuperf", "test_own.py")
    result.stdout.fnmatch_lines(["1 workload NOT-MEASURED on sm_90a: *: test_own.py::test_own [[]other[]]*"])


def test_an_update_with_a_kernel_that_names_its_architecture_leaves_the_gate_of_all_others_green(suite):
    assert suite.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
    suite.write("test_own.py", OWN_ARCH.replace("sm_90a", "sm_80"))
    suite.run("--update-baselines").stdout.fnmatch_lines(["1 baseline written"])
    gated = suite.run("--gpuperf", "--gpuperf-open=fail")
    assert gated.ret == 0, gated.stdout.str()
    gated.stdout.fnmatch_lines(["4 workloads: 4 UNCHANGED"])
    manifest = json.loads((suite.path / "baselines" / "manifest.json").read_text())
    assert (manifest["architectures"], manifest["named_by_kernels"]) == (["sm_80", "sm_90"], ["sm_80"])


def test_an_architecture_that_a_kernel_named_first_is_a_target_once_a_run_asks_for_it(suite):
    suite.write("test_own.py", OWN_ARCH.replace("sm_90a", "sm_80"))
    assert suite.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
    assert modules_on_record(suite, "sm_80") == ["test_own.jsonl"]
    assert suite.run("--update-baselines", ARCHS).ret == 0
    assert modules_on_record(suite, "sm_80") == ["test_own.jsonl", "test_suite.jsonl"]
    manifest = json.loads((suite.path / "baselines" / "manifest.json").read_text())
    assert "named_by_kernels" not in manifest
    (suite.path / "baselines" / "sm_80" / "test_suite.jsonl").unlink()
    assert suite.run("--gpuperf", "--gpuperf-open=fail").ret == 1


def test_a_suite_with_nothing_but_a_variant_on_record_has_it_for_its_target(suite):
    assert suite.run("--update-baselines", "--gpuperf-arch=sm_90a").ret == 0
    result = suite.run("--gpuperf", "--gpuperf-open=fail")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*sm_90a*"])
