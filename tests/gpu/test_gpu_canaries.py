"""Canary kernels on a real GPU: near its ceilings, and as long the second time."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_gpuperf.judge.canary_shift import CANARY_SHIFT
from pytest_gpuperf.timing.canaries import COPIED_BYTES, canary_times

from pytest_gpuperf.device import peaks

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("timer_name", ["cupti", "graph"])
def test_canaries_say_what_the_gpu_can_do_and_say_it_again(cuda_device: Any, timer_name: Any) -> None:
    with cuda_device.lock(), cuda_device.current():
        timer = cuda_device.timer(timer_name)
        times, again = canary_times(cuda_device, timer), canary_times(cuda_device, timer)
    assert times == pytest.approx(again, rel=CANARY_SHIFT / 2)
    flops = 2 * peaks.FMA_CHAINS * peaks.FMA_STEPS * cuda_device.facts.sm_count * cuda_device.facts.max_threads_per_sm
    assert flops / times["fma"] * 1e9 == pytest.approx(cuda_device.peak("fma_throughput"), rel=0.05)
    assert 0.75 < 2 * COPIED_BYTES / times["copy"] * 1e9 / cuda_device.peak("copy_bandwidth") < 1.05
