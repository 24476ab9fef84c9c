"""Every way in which ncu fails is recognised by its own words."""

from __future__ import annotations

import pytest

from pytest_gpuperf.counters.run_ncu import recognise, unknown_metrics

CONNECTED = "==PROF== Connected to process 4711 (/usr/bin/python3.11)\n"


@pytest.mark.parametrize(
    ("words", "reason", "remedy"),
    [
        (
            "\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
            "Counters on the target device 0. For instructions on enabling permissions and to get more information see "
            "https://developer.nvidia.com/ERR_NVGPUCTRPERM\n==WARNING== No kernels were profiled.\n",
            "may not read the GPU's performance counters", "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        (
            "==ERROR== An error was reported by the driver\n==ERROR== Profiling failed because a driver resource was "
            "unavailable. Ensure that no other tool (like DCGM) is concurrently collecting profiling data.\n"
            "==ERROR== The application returned an error code (9).\n",
            "another profiler", "dcgmi profile --pause",
        ),
        (
            "==ERROR== An error was reported by the counter measurement library:\n==ERROR== Failed to initialize the "
            "profiler: LibraryNotLoaded. Check that a compatible driver library is loaded.\n",
            "sandbox", "outside of the sandbox",
        ),
        (
            "==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).\n"
            "==ERROR== The application returned an error code (1).\n==WARNING== No kernels were profiled.\n",
            "sandbox", "--gpus all",
        ),
        (
            "==ERROR== Profiling is not supported on device 0. To find out supported GPUs refer --list-chips option.\n"
            "==WARNING== No kernels were profiled.\n",
            "does not know this GPU", "newer Nsight Compute",
        ),
        ("==ERROR== Cuda driver is not compatible with Nsight Compute.\n", "too new", "update the driver"),
    ],
)  # fmt: skip
def test_known_words_have_a_reason_and_a_remedy(words, reason, remedy):
    found = recognise(CONNECTED + words, "", 9)
    assert reason in found.reason
    assert remedy in found.remedy
    assert str(found) == f"{found.reason}; {found.remedy}"


def test_no_kernels_tells_the_error_of_the_tests():
    words = "==ERROR== The application returned an error code (1).\n==WARNING== No kernels were profiled.\n"
    target = "E   ModuleNotFoundError: No module named 'torch'\n1 error in 0.10s\n"
    found = recognise(words, target, 1)
    assert found.reason.startswith("ncu saw no kernel of any workload")
    assert "The application returned an error code (1)." in found.reason
    found = recognise("==WARNING== No kernels were profiled.\n", target, 1)
    assert "No module named 'torch'" in found.reason


def test_crash_is_told_by_the_last_words_of_the_tests():
    found = recognise(CONNECTED, "collecting ...\nFatal Python error: Segmentation fault\n", 139)
    assert found.reason == (
        "ncu left no report, with exit status 139 (Fatal Python error: Segmentation fault)"
    )  # fmt: skip


def test_unknown_words_are_passed_on():
    found = recognise("==ERROR== The moon is in the wrong house.\n", "", 9)
    assert found.reason == "ncu left no report, with exit status 9 (The moon is in the wrong house.)"
    assert recognise("", "", 0).reason == "ncu left no report, with exit status 0 (no message)"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (r"==ERROR== Failed to find metric regex:^bad_metric_xyz(\.(sum|min|max|avg|pct|ratio|max_rate))?$",
         ("bad_metric_xyz",)),
        ("==ERROR== Failed to find metric smsp__misspelt.sum\n", ("smsp__misspelt.sum",)),
        ("==ERROR== Failed to find metric smsp__misspelt.sum.\n==ERROR== Failed to find metric l1tex__nope.avg\n",
         ("smsp__misspelt.sum", "l1tex__nope.avg")),
        ("==ERROR== something else\n", ()),
    ],
)  # fmt: skip
def test_unknown_metrics_are_named(words, names):
    assert unknown_metrics(words) == names
