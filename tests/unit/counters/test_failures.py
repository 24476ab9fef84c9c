"""Every way in which ncu fails is recognised by its own words."""

from __future__ import annotations

import pytest

from pytest_gpuperf.counters.run_ncu import recognise, unknown_metrics

ERROR = "E   ModuleNotFoundError: No module named 'torch'\n1 error in 0.10s\n"
CONNECTED = "==PROF== Connected to process 4711 (/usr/bin/python3.11)\n"


@pytest.mark.parametrize(("words", "reason", "remedy"), [
    ("ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target "
     "device 0. For instructions on enabling permissions see https://developer.nvidia.com/ERR_NVGPUCTRPERM",
     "may not read the GPU's performance counters", "NVreg_RestrictProfilingToAdminUsers=0"),
    ("Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is "
     "concurrently collecting profiling data.", "another profiler", "dcgmi profile --pause"),
    ("Failed to initialize the profiler: LibraryNotLoaded. Check that a compatible driver library is loaded.",
     "sandbox", "outside of the sandbox"),
    ("Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).", "sandbox", "--gpus all"),
    ("Profiling is not supported on device 0. To find out supported GPUs refer --list-chips option.",
     "does not know this GPU", "newer Nsight Compute"),
    ("Cuda driver is not compatible with Nsight Compute.", "too new", "update the driver"),
])  # fmt: skip
def test_known_words_have_a_reason_and_a_remedy(words, reason, remedy):
    found = recognise(f"{CONNECTED}\n==ERROR== {words}\n==WARNING== No kernels were profiled.\n", "", 9)
    assert reason in found.reason
    assert remedy in found.remedy
    assert str(found) == f"{found.reason}; {found.remedy}"


@pytest.mark.parametrize(("words", "target", "status", "left_report", "reason"), [
    ("==ERROR== The application returned an error code (1).\n==WARNING== No kernels were profiled.\n", ERROR, 1, False,
     "ncu saw no kernel of any workload (The application returned an error code (1).)"),
    ("==WARNING== No kernels were profiled.\n", ERROR, 1, False,
     "ncu saw no kernel of any workload (ModuleNotFoundError: No module named 'torch')"),
    ("==WARNING== No kernels were profiled.\n", ERROR, 0, False, "ncu saw no kernel of any workload"),
    (CONNECTED, "collecting ...\nFatal Python error: Segmentation fault\n", 139, False,
     "ncu left no report, with exit status 139 (Fatal Python error: Segmentation fault)"),
    ("==ERROR== The moon is in the wrong house.\n", "", 9, False,
     "ncu left no report, with exit status 9 (The moon is in the wrong house.)"),
    ("", "", 0, False, "ncu left no report, with exit status 0 (no message)"),
    ("", "", 0, True, "the report of ncu has nothing in it that can be read here"),
])  # fmt: skip
def test_other_words_are_passed_on(words, target, status, left_report, reason):
    assert recognise(words, target, status, left_report=left_report).reason == reason


@pytest.mark.parametrize(("words", "names"), [
    (r"==ERROR== Failed to find metric regex:^bad_metric_xyz(\.(sum|min|max|avg|pct|ratio|max_rate))?$",
     ("bad_metric_xyz",)),
    ("==ERROR== Failed to find metric smsp__misspelt.sum.\n==ERROR== Failed to find metric l1tex__nope.avg\n",
     ("smsp__misspelt.sum", "l1tex__nope.avg")),
    ("==ERROR== something else\n", ()),
])  # fmt: skip
def test_unknown_metrics_are_named(words, names):
    assert unknown_metrics(words) == names
