"""Figures beyond the chip's limits: an error where they are read, a note in the verdict, refused by an update."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence

LIMITED = """
@pytest.hookimpl(tryfirst=True)
def pytest_gpuperf_device(config, worker):
    import msgspec
    gpu = SimulatedGpu(implementations={"work": work, "other": work}, sample_sd=0.0001)
    limits = {"max_sm_clock_mhz": 1980, "max_memory_clock_mhz": 3201, "memory_bus_bits": 6144}
    gpu.facts = msgspec.structs.replace(gpu.facts, **limits)
    return gpu
"""
UPDATE = ("--update-baselines", "--gpuperf-rounds=2", "--gpuperf-processes=1", "-k", "other")


@pytest.fixture
def limited(gpu_suite):
    text = (gpu_suite.path / "conftest.py").read_text()
    gpu_suite.write("conftest.py", text[: text.index("@pytest.hookimpl")] + LIMITED)
    return gpu_suite


def declare(suite, what, read=""):
    suite.edit("test_suite.py", "gpuperf(kernel.launch(grid=2", "result = gpuperf(kernel.launch(grid=2")
    suite.edit("test_suite.py", 'name="doubling",', f'name="doubling", {what},')
    text = (suite.path / "test_suite.py").read_text()
    suite.write("test_suite.py", f"{text.rstrip()}\n    {read or 'pass'}\n")


@pytest.mark.parametrize(
    ("declared", "read", "said"),
    [
        ("bytes=10**12", "result.bandwidth", "the caches of Simulated GPU do at most"),
        ("flops=10**12", "result.flops", "the tensor cores of Simulated GPU do at most"),
    ],
)
def test_reading_a_rate_that_cannot_be_fails_the_test(limited, declared, read, said):
    declare(limited, declared, read)
    result = limited.run("--gpuperf", "-k", "other")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*ImplausibleFigure: doubling: IMPLAUSIBLE: {declared.split('=')[0]}=*{said}*"])


def test_a_rate_that_is_not_read_is_a_note_and_the_time_is_none_the_worse(limited):
    declare(limited, "bytes=10**12", "assert result.time_ns > 0")
    limited.run("--gpuperf", "-k", "other", "--gpuperf-report=found.json").assert_outcomes(passed=1)
    assert "IMPLAUSIBLE: bytes=1000000000000" in (limited.path / "found.json").read_text()


@pytest.mark.parametrize(("declared", "written"), [("bytes=10**12", 0), ("flops=10**12", 0), ("bytes=4096", 1)])
def test_an_update_refuses_what_cannot_be(limited, declared, written):
    declare(limited, declared)
    result = limited.run(*UPDATE)
    assert result.ret == (0 if written else 11)
    path = limited.path / "baselines/simulated-gpu/test_suite.json"
    assert path.exists() == bool(written)
    if written:
        assert read_evidence(path)["tests"]["test_other"]
    else:
        result.stdout.fnmatch_lines(["*refused*IMPLAUSIBLE: *"])
