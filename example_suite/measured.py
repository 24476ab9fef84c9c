<<<<<<< HEAD
"""What a run measured of every workload, from the evidence that the plugin leaves on the report of a test."""

from __future__ import annotations

from typing import Any
=======
"""What the committed baselines say of the suite's workloads: recorded times, and what the two of a pair differ in."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pairs import Pair

from pytest_gpuperf.baselines import BaselineStore
from pytest_gpuperf.evidence import Key, StaticRecord, TimeRecord
from pytest_gpuperf.judge.shift import geometric_mean

GPU = "nvidia-h200"
"""Whose times are on record."""
ARCH = "sm_90"
SUITE = Path(__file__).parent
BASELINES = SUITE.parent / "baselines"

Difference = Literal["code", "launch", "data", "callable"]
>>>>>>> h3


def figures_of(evidence: str) -> list[dict[str, Any]]:
    """One entry per workload that the test launched, in its order; without what was not measured.

    Time in nanoseconds per run, ``bytes`` and ``flops`` as declared, registers per thread and theoretical occupancy
    (0 to 1) on the architecture of this GPU, counters by name.
    """
    import msgspec

    from pytest_gpuperf.session import TestEvidence

<<<<<<< HEAD
    found = msgspec.json.decode(evidence, type=TestEvidence)
    gpu = found.device
    test = {"module": found.module, "test": found.test, **({"gpu": gpu.slug} if gpu else {})}
    return [
        {**test, "workload": work.key.workload, **_figures(work, gpu.arch if gpu else None)}
        for work in found.workloads
        if work.launched
    ]
=======
    def static(self, pair: Pair, workload: str) -> StaticRecord | None:
        """Of any compiler version; None for a function that launches several kernels."""
        key = _key(pair, workload)
        file = self._store.load(ARCH, key.module)
        for toolchain in getattr(file, "toolchains", {}):
            found = self._store.static(ARCH, key, toolchain).record
            if found is not None:
                return found
        return None

    def time_ns(self, pair: Pair, workload: str) -> float | None:
        """Nanoseconds of a run; None for what is not on record."""
        record = self.time(pair, workload)
        return geometric_mean([one.midmean for one in record.rounds]) if record and record.rounds else None

    def gain(self, pair: Pair) -> float | None:
        """How many times longer the naive workload takes."""
        naive, optimised = self.time_ns(pair, pair.naive), self.time_ns(pair, pair.optimised)
        return naive / optimised if naive and optimised else None

    def difference(self, pair: Pair) -> Difference:
        """What the two differ in: the machine code; or else the launch; or else nothing but data.

        A callable, which launches several kernels, has no machine code of its own.
        """
        naive, optimised = self.static(pair, pair.naive), self.static(pair, pair.optimised)
        if naive is None or optimised is None:
            return "callable"
        if naive.profile.code_hash != optimised.profile.code_hash:
            return "code"
        times = self.time(pair, pair.naive), self.time(pair, pair.optimised)
        arguments = [[word.partition(" ")[0] for word in one.identity.arguments] for one in times if one]
        if len(arguments) == 2 and arguments[0] != arguments[1]:
            return "data"
        launches = [one.identity.launch for one in times if one]
        if len(launches) == 2:
            return "launch" if launches[0] != launches[1] else "data"
        blocks = [(one.block, one.dynamic_shared_bytes) for one in (naive, optimised)]
        return "launch" if blocks[0] != blocks[1] else "data"
>>>>>>> h3


def _figures(work: Any, arch: str | None) -> dict[str, Any]:
    from pytest_gpuperf.judge.shift import geometric_mean

    time, static = work.time, work.static.get(arch)
    figures = {
        "time_ns": geometric_mean([one.midmean for one in time.rounds]) if time else None,
        "bytes": time.bytes if time else None,
        "flops": time.flops if time else None,
        "registers": static.profile.registers if static else None,
        "occupancy": static.occupancy.fraction if static and static.occupancy else None,
        "counters": dict(work.counters) or None,
    }
    return {name: figure for name, figure in figures.items() if figure is not None}
