"""The fixtures: ``cuda_kernel``, ``gpu`` and ``gpuperf``.

A plugin of its own, so that ``plugin.py`` holds hooks only.  Nothing heavy is imported until a test asks for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_gpuperf.stash import SHARED, record_of, run_of

if TYPE_CHECKING:
    from pytest_gpuperf.api.cuda_kernel import KernelCompiler
    from pytest_gpuperf.api.gpu_perf import GpuPerf
    from pytest_gpuperf.device.gpu import Gpu


@pytest.fixture(scope="session")
def cuda_kernel(request: pytest.FixtureRequest) -> KernelCompiler:
    """Compile a CUDA kernel with NVRTC, or take one that was compiled elsewhere, with its static evidence.

    In a test, or in a fixture of any scope: what a fixture for several tests compiles is judged once, as its own.
    """
    from pytest_gpuperf.api.cuda_kernel import KernelCompiler  # noqa: PLC0415 NumPy comes with it

    return KernelCompiler(run_of(request.config), request.config.stash[SHARED].location)


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> Iterator[Gpu]:
    """The GPU of this process: seeded arrays, facts, measured peaks and comparisons.

    In a gated run a test has the GPU to itself from its first array to its end.

    Each test starts with CuPy's memory pool emptied: the time of a copy depends on where its arrays lie (on an H200
    135 or 159 us for 512 MB), and that must not depend on which tests ran before.
    """
    run = run_of(request.config)
    record_of(request.node)  # the record of a test that needs the GPU says so if there is none
    run.device.release_unused()
    yield run.gpu
    run.let_go_of_gpu()


@pytest.fixture
def gpuperf(request: pytest.FixtureRequest) -> Iterator[GpuPerf]:
    """Check, measure and judge a workload."""
    from pytest_gpuperf.api.gpu_perf import GpuPerf  # noqa: PLC0415 NumPy comes with it

    run = run_of(request.config)
    yield GpuPerf(run, record_of(request.node), request.node)
    run.let_go_of_gpu()
