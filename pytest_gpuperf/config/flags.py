"""The table of command-line flags, and how each reads its value.

Parsers raise ``BadValue``, whose message says what would have been valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from pytest_gpuperf.model.timer_names import TIMERS
from pytest_gpuperf.model.tolerance import PROFILES

USUAL_FOLDER = "baselines"
"""Of the baselines, below pytest's root, unless another is given."""
MOST_BUDGET_S = 3600
"""For timing one workload."""


class BadValue(ValueError):
    """A value that a flag or ini setting does not accept; the message says what it does."""


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise BadValue(f"accepts {', '.join(choices)}")
        return text

    return parse


def number(low: float, high: float, unit: str = "") -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise BadValue(f"accepts a number from {low:g} to {high:g}{unit}")
        return value

    return parse


def whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text) or not low <= int(text) <= high:
            raise BadValue(f"accepts a whole number from {low} to {high}")
        return int(text)

    return parse


def _listed(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def is_metric(word: str) -> bool:
    """Whether it can be a metric's name: without an underscore it is a misspelt set, or a set where none is taken."""
    return re.fullmatch(_METRIC, word) is not None


def architectures(text: str) -> tuple[str, ...]:
    from pytest_gpuperf.model.architectures import SPELLINGS  # noqa: PLC0415 no plain run needs the table

    names = _listed(text)
    if not names or not set(names) <= set(SPELLINGS):
        raise BadValue(f"accepts architectures separated by commas, of {', '.join(SPELLINGS)}")
    return names


_METRIC = r"(derived:)?(?=[^.]*_)[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*"
UPDATE_MODES = ("new", "changed", "all")
METRIC_SETS = ("default", "memory", "compute", "latency", "full")


def metric_words(text: str) -> tuple[str, ...]:
    words = _listed(text)
    if not words or not all(word in METRIC_SETS or is_metric(word) for word in words):
        raise BadValue(f"accepts {', '.join(METRIC_SETS)}, and names of metrics, separated by commas")
    return words


def metrics(text: str) -> dict[str, float | None]:
    """Names, or names with a tolerance behind a space, separated by commas or line breaks."""
    found: dict[str, float | None] = {}
    for entry in re.split(r"[,\n]", text):
        name, _, tolerance = entry.strip().partition(" ")
        try:
            value = float(tolerance) if tolerance.strip() else None
        except ValueError:
            value = float("nan")
        if name and (not is_metric(name) or (value is not None and not -1 <= value <= 100)):
            raise BadValue("accepts metrics, each a name or a name and a tolerance such as 'dram__bytes.sum 0.02'")
        if name:
            found[name] = value
    return found


REPORT_ENDINGS = (".json", ".md", ".html")
GITHUB = "github"
"""In the place of a file: the summary of the GitHub job that the run is in."""


def reports(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(_listed(text)))
    if not names or not all(name == GITHUB or name.endswith(REPORT_ENDINGS) for name in names):
        raise BadValue(f"accepts files that end in {', '.join(REPORT_ENDINGS)}, and {GITHUB}, separated by commas")
    return names


class Flag(NamedTuple):
    """One command-line flag; without ``parse`` it is a switch."""

    name: str
    field: str
    """Of ``Options``."""
    help: str
    parse: Callable[[str], Any] | None = None
    ini: bool = True
    metavar: str | None = None
    const: str | None = None
    """Value of the flag given without one."""
    hidden: bool = False
    adds_up: bool = False
    """Given again, it adds to what was given before and takes nothing back."""

    @property
    def ini_name(self) -> str:
        return self.name.lstrip("-").replace("-", "_")


FLAGS: tuple[Flag, ...] = (
    Flag("--gpuperf", "enabled", "measure GPU workloads, compare them with their baselines, fail what regressed"),
    Flag("--update-baselines", "update", "record baselines: new (workloads that have none), changed (the default: "
         "these, what is proven to have changed, and tests given by node id) or all",
         one_of(*UPDATE_MODES), ini=False, metavar="MODE", const="changed"),
    Flag("--gpuperf-require-gpu", "require_gpu", "fail at once if there is no usable GPU"),
    Flag("--gpuperf-arch", "archs", "static targets (default: those with baselines, else the GPU's own, else "
         "sm_80, sm_90 and sm_120)",
         architectures, metavar="sm_80,sm_90"),
    Flag("--gpuperf-baselines", "baselines", "folder of the baselines (default: baselines, beside the ini file)",
         str, metavar="DIR"),
    Flag("--gpuperf-against", "against", "compare with a git revision instead of with baselines: a commit, a branch or "
         "merge-base:main", str, ini=False, metavar="REF"),
    Flag("--gpuperf-against-python", "against_python", "Python that runs the revision's tests (default: this one)", str,
         ini=False, metavar="PATH"),
    Flag("--gpuperf-open", "open", "what is not proven (NEW, NOT-COMPARABLE, NOT-MEASURED): "
         "fail (default under CI) or warn (default elsewhere)", one_of("fail", "warn"), metavar="ACTION"),
    Flag("--gpuperf-missing", "missing", "a workload without a baseline: fail or warn (default: as --gpuperf-open); "
         "fail, if given, also for a baseline that a test did not reach because it needed a GPU first",
         one_of("fail", "warn"), metavar="ACTION"),
    Flag("--gpuperf-inconclusive", "inconclusive", "a workload whose time is undecided (INCONCLUSIVE): fail or "
         "warn (default)", one_of("fail", "warn"), metavar="ACTION"),
    Flag("--gpuperf-static-causes", "static_causes", "bank conflicts, lost coalescing and lost vectorisation that the "
         "machine code proves: exact (default, they gate) or off", one_of("exact", "off"), metavar="WHICH"),
    Flag("--gpuperf-strict", "strict", "fail on a stale baseline too (FASTER, BETTER)"),
    Flag("--gpuperf-profile", "profile", "slowdown that is accepted / that is found: tight 0.5/1 %% (default), "
         "standard 1/2 %%, loose 2/5 %%",
         one_of(*PROFILES), metavar="NAME"),
    Flag("--gpuperf-tolerance", "tolerance", "slowdown that is accepted, as a fraction such as 0.005",
         number(0.0005, 0.5), metavar="FRACTION"),
    Flag("--gpuperf-cache", "cache", "L2 state before each sample: cold (flushed, default) or warm",
         one_of("cold", "warm"), metavar="STATE"),
    Flag("--gpuperf-timer", "timer", f"auto (default: the best that works), {', '.join(TIMERS[:-1])} or {TIMERS[-1]}",
         one_of("auto", *TIMERS), metavar="NAME"),
    Flag("--gpuperf-budget", "budget_s",
         "wall-clock seconds for timing one workload (default 5, and 320 with sustained slots)",
         number(0.05, MOST_BUDGET_S, " seconds"), metavar="SECONDS"),
    Flag("--gpuperf-changed", "changed_only", "do not time workloads whose machine code and launch are unchanged"),
    Flag("--gpuperf-all", "pair_all", "pair unchanged workloads with their baselines too, not only changed ones"),
    Flag("--gpuperf-pair-callables", "pair_callables", "pair callables with the commit of their record, each in "
         "its own process: auto (default: where files have changed since), always or off",
         one_of("auto", "always", "off"), metavar="WHEN"),
    Flag("--gpuperf-ncu", "ncu", "collect and gate hardware counters with Nsight Compute: default, memory, compute, "
         "latency, full, or names of metrics", metric_words, metavar="SET", const="default"),
    Flag("--gpuperf-metrics", "metrics", "more metrics to collect; a number behind a name is the tolerance to gate it "
         "by, such as 'dram__bytes.sum 0.02'", metrics, metavar="NAME,..."),
    Flag("--gpuperf-ncu-timeout", "ncu_timeout_s", "limit for collecting counters, in seconds (default: 60, and "
         "10 per test)", number(1, 86400, " seconds"), metavar="SECONDS"),
    Flag("--gpuperf-ncu-json", "ncu_json", "write every collected counter to this JSON file", str, metavar="FILE",
         ini=False),
    Flag("--gpuperf-explain", "explain", "say what holds each workload back, and why it changed"),
    Flag("--gpuperf-report", "reports", "write a report to files that end in .json, .md or .html; github: the "
         "summary of the GitHub job", reports, metavar="FILE,...", adds_up=True),
    Flag("--gpuperf-nvrtc", "nvrtc", "folder with another NVRTC (pip install --target DIR "
         "nvidia-cuda-nvrtc==VERSION)",
         str, ini=False, metavar="DIR"),
    Flag("--gpuperf-allow-ci-update", "allow_ci_update", "let --update-baselines write under CI", ini=False),
    Flag("--gpuperf-trust-cubins", "trust_cubins", "under CI, also believe and launch baselines that the change "
         "under test brought along", ini=False),
    Flag("--gpuperf-force-update", "force_update", "also record measurements that were disturbed", ini=False),
    Flag("--gpuperf-kernel-timeout", "kernel_timeout_s", "seconds after which a kernel that has not ended is taken for "
         "endless (default 60): its test fails, and the run ends; with -n 1 the others run in a fresh process",
         number(1, 86400, " seconds"), metavar="SECONDS"),
    Flag("--gpuperf-task", "task", "", str, ini=False, hidden=True),
)  # fmt: skip
