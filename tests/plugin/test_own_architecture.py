"""A kernel with an ``arch=`` of its own: its record binds that kernel, and makes no other one be compiled for it."""

from __future__ import annotations

import json

ARCHS = "--gpuperf-arch=sm_80,sm_90"
OPEN = ("--gpuperf", "--gpuperf-open=fail")
OWN_ARCH = """
def test_own(cuda_kernel):
    cuda_kernel("other.cu", "other", arch="sm_90a")
"""


def modules_on_record(suite, arch):
    return sorted(file.name for file in (suite.path / "baselines" / arch).glob("*.jsonl"))


def manifest(suite):
    return json.loads((suite.path / "baselines" / "manifest.json").read_text())


def test_variant_is_on_record_for_its_kernel_alone(suite):
    """A change of it and its going are seen."""
    suite.write("test_own.py", OWN_ARCH)
    assert suite.run("--update-baselines", ARCHS).ret == 0
    assert suite.run(*OPEN).ret == 0
    assert suite.run("--update-baselines=all").ret == 0
    assert modules_on_record(suite, "sm_90a") == ["test_own.jsonl"]
    assert modules_on_record(suite, "sm_90") == ["test_suite.jsonl"]
    suite.edit("other.cu", "a[i] * 2.0f", "a[i] * 2.0f + __shfl_sync(~0u, a[i], 3)")
    result = suite.run("--gpuperf", "test_own.py")
    result.stdout.fnmatch_lines(["*sm_90a  verdict", "*other * SAME"])
    changed = '"work.cu", "work", options=["-DSTEPS=1"]'
    suite.write("test_own.py", OWN_ARCH.replace('"other.cu", "other", arch="sm_90a"', changed))
    result = suite.run("--gpuperf", "test_own.py")
    result.stdout.fnmatch_lines(["1 workload NOT-MEASURED on sm_90a: *: test_own.py::test_own [[]other[]]*"])


def test_architecture_that_a_kernel_named_first_is_a_target_once_a_run_asks_for_it(suite):
    """Until then the gate of all others stays green."""
    assert suite.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
    suite.write("test_own.py", OWN_ARCH.replace("sm_90a", "sm_80"))
    suite.run("--update-baselines").stdout.fnmatch_lines(["1 baseline written"])
    gated = suite.run(*OPEN)
    assert gated.ret == 0, gated.stdout.str()
    gated.stdout.fnmatch_lines(["4 workloads: 4 UNCHANGED"])
    assert (manifest(suite)["architectures"], manifest(suite)["named_by_kernels"]) == (["sm_80", "sm_90"], ["sm_80"])
    assert modules_on_record(suite, "sm_80") == ["test_own.jsonl"]
    assert suite.run("--update-baselines", ARCHS).ret == 0
    assert modules_on_record(suite, "sm_80") == ["test_own.jsonl", "test_suite.jsonl"]
    assert "named_by_kernels" not in manifest(suite)
    (suite.path / "baselines" / "sm_80" / "test_suite.jsonl").unlink()
    assert suite.run(*OPEN).ret == 1


def test_suite_with_nothing_but_a_variant_on_record_has_it_for_its_target(suite):
    assert suite.run("--update-baselines", "--gpuperf-arch=sm_90a").ret == 0
    result = suite.run(*OPEN)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*sm_90a*"])
