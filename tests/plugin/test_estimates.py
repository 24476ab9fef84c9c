"""The warp model's estimate explains and outranks single figures; it is in no record, and spills gate
without it where no occupancy rises for them."""

from __future__ import annotations

import json

import pytest
from suite_under_test import HOG

from pytest_gpuperf.cli.command_line import main
from pytest_gpuperf.compile.warp_model import estimate as estimate_module
from pytest_gpuperf.compile.warp_model.clock import LATENCY

HOG_TEST = """
def test_hog(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("hog.cu", "hog", options=[])
    a, b = gpu.random(4096, seed=1), gpu.empty(32)
    gpuperf(kernel.launch(grid=1, block=32, args=(a, b)))
"""
SPILLING = ("options=[]", 'options=["-maxrregcount=32"]')


@pytest.fixture
def hog_suite(suite):
    suite.write("hog.cu", HOG)
    suite.write("test_hog.py", HOG_TEST)
    suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90", "test_hog.py")
    return suite


@pytest.fixture
def walked(monkeypatch, tmp_path):
    """Architectures of the kernels that were walked through, nothing being kept from earlier runs."""
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(tmp_path / "cache"))
    archs = []
    walk = estimate_module.dry_run

    def watched(program, *more):
        archs.append(program.arch)
        return walk(program, *more)

    monkeypatch.setattr(estimate_module, "dry_run", watched)
    return archs


def verdicts(suite):
    document = json.loads((suite.path / ".gpuperf/last-run.json").read_text())
    return [
        (judgement["target"], judgement["verdict"], judgement.get("changes"))
        for test in document["tests"]
        for work in test["workloads"]
        for judgement in work["judgements"]
    ]


def slow_memory(suite, monkeypatch):
    """Another model: accesses to memory take ten times as long, and what was estimated before is forgotten."""
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(suite.path / "cache"))
    for name in ("global_load", "local_load", "shared_load"):
        monkeypatch.setitem(LATENCY, name, LATENCY[name] * 10)


def test_a_changed_latency_changes_no_committed_byte(hog_suite, monkeypatch):
    before = hog_suite.baseline_files()
    slow_memory(hog_suite, monkeypatch)
    assert hog_suite.run("--update-baselines=all", "--gpuperf-arch=sm_80,sm_90", "test_hog.py").ret == 0
    assert hog_suite.baseline_files() == before


@pytest.mark.parametrize("edits", [(), (SPILLING,)], ids=["unchanged", "spilling"])
def test_a_changed_latency_changes_no_verdict(hog_suite, monkeypatch, edits):
    for edit in edits:
        hog_suite.edit("test_hog.py", *edit)
    status = hog_suite.run("--gpuperf", "test_hog.py").ret
    before = verdicts(hog_suite)
    slow_memory(hog_suite, monkeypatch)
    assert hog_suite.run("--gpuperf", "test_hog.py").ret == status == (1 if edits else 0)
    assert verdicts(hog_suite) == before


def test_an_unchanged_kernel_is_not_estimated(hog_suite, walked):
    assert hog_suite.run("--gpuperf", "test_hog.py").ret == 0
    assert walked == []


def test_a_changed_kernel_is_estimated_beside_its_baseline(hog_suite, walked):
    hog_suite.edit("test_hog.py", *SPILLING)
    result = hog_suite.run("--gpuperf", "test_hog.py")
    sides = 2
    assert sorted(walked) == sorted(["sm_80", "sm_90"] * sides)
    result.stdout.fnmatch_lines(["*spilled bytes per thread 0 -> *, local memory accesses 0 -> * per warp*"])


def test_whoever_asks_gets_an_estimate_of_an_unchanged_kernel(hog_suite, walked, monkeypatch, capsys):
    assert hog_suite.run("--gpuperf", "test_hog.py").ret == 0
    assert not walked
    monkeypatch.chdir(hog_suite.path)
    capsys.readouterr()
    assert main(["explain"]) == 0
    assert walked
    assert "4 sectors per" in capsys.readouterr().out
