"""What else a run will ask of a source, told by its baselines: compiled along with the first kernel of that source.

A matter of speed alone.  A baseline of the same source, headers and options names the kernels that its test
had of it, so the tests of this run will have them again; whoever is wrong about that has compiled in vain.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_gpuperf.bench import Bench


def name_expressions(bench: Bench, module: str, tests: Set[str], source_hash: str) -> tuple[str | None, ...]:
    """Of the kernels that ``tests`` of ``module`` had of the source; None stands for all that are no templates.

    Nothing under pytest-xdist, whose workers would all compile the same, nor without a gate or a readable baseline.
    """
    from pytest_gpuperf.baselines import BaselineError
    from pytest_gpuperf.compile import toolchain

    if bench.worker is not None or not bench.options.active:
        return ()
    try:
        known = bench.store.static_tests(bench.targets[0], module, toolchain())
    except BaselineError:  # for the judge to tell
        return ()
    kernels = {
        record.kernel
        for test in known.keys() & tests
        for record in known[test].values()
        if record.source_hash == source_hash
    }
    return tuple(dict.fromkeys(kernel if "<" in kernel else None for kernel in sorted(kernels)))
