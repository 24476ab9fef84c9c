"""Launches that are paired with themselves, in runs where nothing can be said about them."""

from __future__ import annotations

TEST = """
def test_body(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("other.cu", "other")
    a = gpu.random(512, seed=2)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=2, block=256, args=(a, b, 512)))
"""

THROTTLING = """
from pytest_gpuperf.evidence import DeviceState
import itertools

class Throttling(SimulatedGpu):
    flips = itertools.count()
    def state(self):
        reasons = ("power cap",) if next(self.flips) % 2 else ()
        return DeviceState(sm_clock_mhz=1980, throttle_reasons=reasons)

@pytest.hookimpl(tryfirst=True)
def pytest_gpuperf_device(config, worker):
    return Throttling(implementations={"work": work, "other": work})
"""


def test_a_sentinel_whose_blocks_were_all_discarded_rings_for_nobody(gpu_suite):
    text = (gpu_suite.path / "conftest.py").read_text()
    gpu_suite.write("conftest.py", text + THROTTLING)
    gpu_suite.write("test_body.py", TEST)
    result = gpu_suite.run("test_body.py", "--gpuperf")
    text = result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in text
    assert "paired with itself" not in text
    assert result.ret == 0
