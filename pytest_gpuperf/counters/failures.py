"""Failures of ``ncu``: the reason that its words give, and the remedy.

The words are those of Nsight Compute 2022 to 2026; a text that is not known yet is passed on as it is.
"""

from __future__ import annotations

import re

from pytest_gpuperf.errors import GpuperfError


class CountersUnavailable(GpuperfError):
    """Counters cannot be collected here and now, for ``reason``; ``remedy`` says what to do."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.reason, self.remedy = reason, remedy


NEWEST_READER = "pip install 'pytest-gpuperf[ncu]', and the newest ncu-report: it has to be as new as ncu"
PERMISSION_REMEDY = (
    "on the host: 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' in /etc/modprobe.d, then reload the driver "
    "(rebuild the initrd and reboot; afterwards /proc/driver/nvidia/params has RmProfilingAdminOnly: 0); in a "
    "container: start it with --cap-add=SYS_ADMIN; in a cloud that allows neither, counters cannot be had. "
    "Time and static evidence do not need this"
)
_KNOWN = (
    (r"ERR_NVGPUCTRPERM", "this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)",
     PERMISSION_REMEDY),
    (r"driver resource was unavailable|CUPTI_ERROR_MULTIPLE_SUBSCRIBERS|already (?:being )?profiled",
     "another profiler holds the GPU's counters",
     "end other runs of ncu and nsys; pause DCGM's profiling (dcgmi profile --pause, or stop dcgm-exporter) and "
     "resume it afterwards"),
    (r"LibraryNotLoaded|stub libcuda|failed to connect to the CUDA driver|Failed to prepare kernel for profiling|"
     r"Windows Subsystem", "ncu cannot reach the driver from this sandbox",
     "run outside of the sandbox (gVisor, WSL and some containers have no profiling), or start the container "
     "with --gpus all and --cap-add=SYS_ADMIN"),
    (r"Profiling is not supported on (?:device|this)", "this ncu does not know this GPU",
     "install a newer Nsight Compute (ncu --list-chips names what it knows)"),
    (r"driver is not compatible with Nsight Compute", "this ncu is too new for the driver",
     "update the driver, or install the Nsight Compute that came with the driver's CUDA version"),
)  # fmt: skip
"""Pattern in ncu's words, reason and remedy."""
_UNKNOWN_METRIC = re.compile(r"Failed to find metric (?:regex:\^)?([A-Za-z_][\w\\.]*)")
_LINE = re.compile(r"^==(?:ERROR|WARNING)==[ \t]*(\S.*)$", re.MULTILINE)


def unknown_metrics(words: str) -> tuple[str, ...]:
    """Metrics that ncu says it does not know, as it was given them."""
    return tuple(name.replace("\\", "").rstrip(".") for name in _UNKNOWN_METRIC.findall(words))


def recognise(words: str, target_words: str, status: int, *, left_report: bool = False) -> CountersUnavailable:
    """Reason and remedy for a run without counters.

    ``words`` are ncu's own, ``target_words`` the profiled program's; ``status`` is ncu's exit status.
    """
    said = _LINE.findall(words)
    for pattern, reason, remedy in _KNOWN:
        if any(re.search(pattern, line) for line in said):
            return CountersUnavailable(reason, remedy)
    if left_report:
        return CountersUnavailable("the report of ncu has nothing in it that can be read here", NEWEST_READER)
    told = [line for line in said if "No kernels" not in line and "target-processes" not in line]
    why = told[0] if told else _last(target_words) if status else ""
    if len(told) < len(said):
        return CountersUnavailable(
            "ncu saw no kernel of any workload" + (f" ({why})" if why else ""),
            "see that the tests pass under plain pytest and launch on the current stream of this process",
        )
    return CountersUnavailable(
        f"ncu left no report, with exit status {status} ({why or 'no message'})",
        "run the same tests without --gpuperf-ncu first, then ncu by hand on any CUDA program",
    )


def _last(text: str) -> str:
    """The last error that pytest shows, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    return (errors or lines or [""])[-1]
