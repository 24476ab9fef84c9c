"""Failures of ``ncu``: the reason that its words give, and the remedy.

The words are those of Nsight Compute 2022 to 2026; a text that is not known yet is passed on as it is.
"""

from __future__ import annotations

import re


class CountersUnavailable(Exception):
    """Counters cannot be collected here and now, for ``reason``; ``remedy`` says what to do.

    ``kind`` is a short name of the reason (``permission``, ``busy``, ``no ncu`` ...), for programs and tests.
    """

    def __init__(self, kind: str, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.kind, self.reason, self.remedy = kind, reason, remedy


NEWEST_READER = "pip install 'pytest-gpuperf[ncu]', and the newest ncu-report: it has to be as new as ncu"
PERMISSION_REMEDY = (
    "on the host: 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' in /etc/modprobe.d, then reload the driver "
    "(rebuild the initrd and reboot; afterwards /proc/driver/nvidia/params has RmProfilingAdminOnly: 0); in a "
    "container: start it with --cap-add=SYS_ADMIN; in a cloud that allows neither, counters cannot be had. "
    "Time and static evidence do not need this"
)
_KNOWN = (
    ("permission", r"ERR_NVGPUCTRPERM", "this user may not read the GPU's performance counters "
     "(ERR_NVGPUCTRPERM)", PERMISSION_REMEDY),
    ("busy", r"driver resource was unavailable|CUPTI_ERROR_MULTIPLE_SUBSCRIBERS|already (?:being )?profiled",
     "another profiler holds the GPU's counters",
     "end other runs of ncu and nsys; pause DCGM's profiling (dcgmi profile --pause, or stop dcgm-exporter) and "
     "resume it afterwards"),
    ("lock", r"InterprocessLockFailed|nsight-compute-lock", "ncu cannot take its lock file",
     "remove nsight-compute-lock from the temporary folder if no ncu is running, or point TMPDIR at a folder "
     "that this user may write to"),
    ("sandbox", r"LibraryNotLoaded|stub libcuda|failed to connect to the CUDA driver|Failed to prepare kernel "
     r"for profiling|Windows Subsystem", "ncu cannot reach the driver from this sandbox",
     "run outside of the sandbox (gVisor, WSL and some containers have no profiling), or start the container "
     "with --gpus all and --cap-add=SYS_ADMIN"),
    ("unsupported", r"Profiling is not supported on (?:device|this)", "this ncu does not know this GPU",
     "install a newer Nsight Compute (ncu --list-chips names what it knows)"),
    ("driver", r"driver is not compatible with Nsight Compute", "this ncu is too new for the driver",
     "update the driver, or install the Nsight Compute that came with the driver's CUDA version"),
    ("too old", r"unrecognised option|unrecognized option", "this ncu does not know an option that it is given",
     "install a newer Nsight Compute, or put a newer one first on PATH"),
    ("disk", r"No space left on device|Failed to (?:create|write|open) (?:the )?(?:report|file)",
     "ncu cannot write its report", "free space in the temporary folder, or point TMPDIR elsewhere"),
)  # fmt: skip
"""Kind, pattern in ncu's words, reason and remedy."""
_UNKNOWN_METRIC = re.compile(r"Failed to find metric (?:regex:\^)?([A-Za-z_][\w\\.]*)")
_LINE = re.compile(r"^==(?:ERROR|WARNING)==\s*(.*)$", re.MULTILINE)


def unknown_metrics(words: str) -> tuple[str, ...]:
    """Metrics that ncu says it does not know, as it was given them."""
    found = (name.replace("\\", "").rstrip(".") for name in _UNKNOWN_METRIC.findall(words))
    return tuple(dict.fromkeys(found))


def complaints(words: str) -> list[str]:
    """Lines in which ncu reports an error or a warning."""
    return [line.strip() for line in _LINE.findall(words) if line.strip()]


def recognise(words: str, target_words: str, status: int, *, left_report: bool = False) -> CountersUnavailable:
    """Reason and remedy for a run without counters.

    ``words`` are ncu's own, ``target_words`` the profiled program's; ``status`` is ncu's exit status.
    """
    said = complaints(words)
    text = "\n".join(said)
    for kind, pattern, reason, remedy in _KNOWN:
        if re.search(pattern, text):
            return CountersUnavailable(kind, reason, remedy)
    first, last = said[0] if said else "", _last(target_words)
    if "No kernels were profiled" in text:
        told = [line for line in said if "No kernels" not in line and "target-processes" not in line]
        why = told[0] if told else last if status else ""
        kind, reason = "no kernels", "ncu saw no kernel of any workload" + (f" ({why})" if why else "")
        remedy = "see that the tests pass under plain pytest and launch on the current stream of this process"
    elif left_report:
        kind, reason = "no reader", "the report of ncu has nothing in it that can be read here"
        remedy = NEWEST_READER
    elif status:
        why = first or last or "nothing was said"
        kind, reason = "crash", f"the profiled tests ended with exit status {status} and left no report: {why}"
        remedy = "run the same tests without --gpuperf-ncu first"
    else:
        kind, reason = "no report", f"ncu left no report and does not say why ({first or 'no message'})"
        remedy = "run ncu by hand on any CUDA program, and gpuperf doctor"
    return CountersUnavailable(kind, reason, remedy)


def timed_out(seconds: float) -> CountersUnavailable:
    return CountersUnavailable(
        "timeout", f"collecting counters was not done after {seconds:.0f} s",
        "select fewer tests, collect fewer metrics (--gpuperf-ncu=default), or raise --gpuperf-ncu-timeout",
    )  # fmt: skip


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    return (errors or lines or [""])[-1]
