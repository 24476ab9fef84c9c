"""The page about the tools' findings."""

from __future__ import annotations

from collections.abc import Sequence

from sanitizing.kernels import NEVER_LAUNCHED, SharedKernel
from sanitizing.tools import Outcome

HEADER = """\
# compute-sanitizer over the example suite

Made by

    python benchmarks/sanitize.py run --to DIR [--only memcheck|racecheck|synccheck]
    python benchmarks/sanitize.py page DIR --output docs/results/sanitizer.md

memcheck watches the whole suite, every workload once at its full size, with an allocation of its own for every array;
its test files are shared out to several processes, since a single one runs out of the GPU's memory. racecheck and
synccheck watch the small tests that launch the kernels with shared memory. Each tool first has to report a kernel that
is wrong in its way; a kernel that it had to see and did not would be named here. Internal errors are the tool's own:
where it has one, it does not track what comes next.
"""
SHARED = """
## Kernels with shared memory

Static and dynamic bytes of a block, at most, from the static baselines; launches under {tools}.
"""


def page(outcomes: Sequence[Outcome], shared: Sequence[SharedKernel]) -> str:
    """Markdown; the same for the same outcomes."""
    where = sorted({f"{one.gpu}, driver {one.driver}" for one in outcomes if one.gpu})
    lines = [HEADER, f"On {'; '.join(where) or 'no GPU'}, compute-sanitizer {_versions(outcomes)}.\n"]
    lines.append("| tool | processes | kernels | launches | errors | internal errors | of a wrong kernel | seconds | |")
    lines.append("|---|---|---|---|---|---|---|---|---|")
    lines += [_row(one) for one in outcomes]
    racing = [one for one in outcomes if one.tool != "memcheck"]
    lines.append(SHARED.format(tools=" and ".join(one.tool for one in racing) or "no tool"))
    lines += [f"| kernel | bytes |{''.join(f' {one.tool} |' for one in racing)}", f"|---|---|{'---|' * len(racing)}"]
    lines += [
        f"| `{one.name}` | {one.shared_bytes} |{''.join(f' {by.launches.get(one.name, 0)} |' for by in racing)}"
        for one in shared
    ]
    lines += ["", "Never launched, on purpose:", ""]
    lines += [f"* `{name}`: {reason}" for name, reason in NEVER_LAUNCHED.items()]
    return "\n".join(lines) + "\n"


def _versions(outcomes: Sequence[Outcome]) -> str:
    return ", ".join(sorted({one.version for one in outcomes}))


def _row(one: Outcome) -> str:
    clean = "; ".join(one.problems) or "clean"
    errors = "no summary" if one.errors is None else str(one.errors)
    control = "no summary" if one.control is None else f"{one.control} reported"
    seen = f"{one.processes} | {len(one.launches)} | {sum(one.launches.values())}"
    said = f"{errors} | {len(one.internal)} | {control}"
    return f"| {one.tool} | {seen} | {said} | {one.seconds:.0f} | {clean.replace('|', chr(92) + '|')} |"
