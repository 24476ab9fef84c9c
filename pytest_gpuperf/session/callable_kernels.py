"""Which kernels of a callable changed: notes on its time, for no verdict rests on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_gpuperf.compile.machine_code.symbols import short_name
from pytest_gpuperf.formatting import duration, numbered
from pytest_gpuperf.model.result import LaunchedKernel
from pytest_gpuperf.model.verdict import Change

MOST_NAMED = 6
"""Kernels that a note names."""
ALIKE, NAMED_SHARE = 1.02, 1 / 3
"""A kernel's times of one slot differ by less, whoever runs it; by more only where its memory lies elsewhere, as by 6 %
for PyTorch's softmax on an H200.  So one of equal code is named only if it makes such a share of the difference."""


def kernel_notes(
    kernels: Sequence[LaunchedKernel], before: Mapping[str, float], changes: Mapping[str, Sequence[Change]], *,
    passes: bool,
) -> Iterator[str]:  # fmt: skip
    """How the kernels differ from those of the baseline, with its times ``before``; ``changes`` of code are by name.

    A callable that ``passes`` gets a word on kernels that are new or missing, and no times.
    """
    now = {one.name: one.time_ns for one in kernels if one.time_ns is not None}
    if not passes and not before and now:
        yield f"its kernels: {_listed({name: f'{name} {duration(ns)}' for name, ns in now.items()}, now)}"
    if not before or not now:
        return
    was, differs = _by_name(kernels, before), {}
    both = now.keys() & was.keys()
    whole = abs(sum(now[name] - was[name] for name in both))
    for name in both:
        ratio, figures = now[name] / was[name], [f"{one.what} {one.figures}" for one in changes.get(name, ())]
        if figures or (max(ratio, 1 / ratio) > ALIKE and abs(now[name] - was[name]) >= NAMED_SHARE * whole):
            differs[name] = ", ".join([f"{name} x{ratio:.3g}", *figures])
    if not passes:
        costs = {name: now[name] - was[name] for name in differs}
        head = f"{len(both) - len(differs)} of {numbered(len(now), 'kernel')} unchanged"
        yield "; ".join(filter(None, (head, _listed(differs, costs))))
    for words, times, others in (("new in this callable", now, was), ("no longer launched", was, now)):
        shown = {name: f"{name} {duration(ns)}" for name, ns in times.items() if name not in others}
        if shown:
            yield f"{words}: {_listed(shown, times)}"


def _listed(shown: Mapping[str, str], costs: Mapping[str, float]) -> str:
    """The kernels that cost most, and how many more there are."""
    dearest = [shown[name] for name in sorted(shown, key=lambda name: -costs[name])]
    more = [f"and {len(dearest) - MOST_NAMED} more"] if len(dearest) > MOST_NAMED else []
    return "; ".join([*dearest[:MOST_NAMED], *more])


def _by_name(kernels: Sequence[LaunchedKernel], before: Mapping[str, float]) -> dict[str, float]:
    """Times by the names of the kernels that run now, other instances of a template by their own; without copies."""
    names = {one.symbol: one.name for one in kernels if one.time_ns is not None}
    found = {names[symbol]: ns for symbol, ns in before.items() if symbol in names}
    for symbol, ns in before.items():
        if symbol not in names and not symbol.startswith("["):
            short = short_name(symbol)
            found[short if short not in found else symbol] = ns
    return found
