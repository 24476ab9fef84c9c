"""A test that another plugin runs again after a failure, as pytest-rerunfailures does."""

from __future__ import annotations

TEST = """
def test_body(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("other.cu", "other")
    a = gpu.random(512, seed=2)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=2, block=256, args=(a, b, 512)))
    import conftest
    conftest.attempts.append(1)
    assert len(conftest.attempts) > 1
"""

RERUN = """
import pytest
from _pytest.runner import runtestprotocol

attempts = []

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(report.failed for report in reports):
        print("SECOND ATTEMPT")
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
"""


def test_a_test_that_is_run_again_starts_with_an_empty_book(gpu_suite):
    text = (gpu_suite.path / "conftest.py").read_text()
    gpu_suite.write("conftest.py", text + RERUN)
    gpu_suite.write("test_body.py", TEST)
    result = gpu_suite.run("test_body.py", "--gpuperf")
    assert result.ret == 0, result.stdout.str()
    assert "SECOND ATTEMPT" in result.stdout.str()
