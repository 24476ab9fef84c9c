"""Which cause is named first, what it would gain, of what work its figures are, and which causes the manual has."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from advise_samples import dry, load, record, side
from record_samples import time_of

from pytest_gpuperf.advise import causes
from pytest_gpuperf.advise.advisor import advise, proven_causes
from pytest_gpuperf.advise.comparison import Side, change
from pytest_gpuperf.advise.usage_from_code import scale_of
from pytest_gpuperf.model.warp_estimate import Access, WarpEstimate


def static(code: str, *accesses, executed=None, **figures):  # type: ignore[no-untyped-def]
    kept = {name: figures.pop(name) for name in ("cycles", "lanes", "divisions", "waits") if name in figures}
    return side(record(code, **figures), estimate=dry(executed, *accesses, **kept))


def test_the_machine_code_names_uncoalesced_access_first() -> None:
    before = static("a", load(), load(op="global_store", times=1))
    after = static("b", load(sectors=32.0), load(op="global_store", times=1))
    (advice, *_) = advise(before, after)
    assert (advice.cause, advice.counted, advice.arch) == ("uncoalesced access", False, "sm_90")
    assert 0.5 < advice.gain < 1
    timed = (msgspec.structs.replace(one, time_ns=time) for one, time in ((before, 100.0), (after, 110.0)))
    assert advise(*timed)[0].gain == pytest.approx(1 - 100 / 110, abs=1e-3)  # times bound it


def test_a_time_is_of_more_work_where_bytes_and_operations_say_so() -> None:
    """Twice the bytes for half of the operations is a result that is fetched, and no larger one."""
    given = {"bytes": 100, "flops": 40}
    before = msgspec.structs.replace(static("a", load()), time_ns=100.0, record=time_of(**given))
    for declared, slower in (({"bytes": 200}, False), ({"bytes": 200, "flops": 80}, False),
                             ({"bytes": 200, "flops": 20}, True), ({}, True)):  # fmt: skip
        uncoalesced = static("b", load(sectors=32.0))
        found = advise(before, msgspec.structs.replace(uncoalesced, time_ns=200.0, record=time_of(**declared)))
        assert (found[0].gain > 0) is slower, declared


def test_a_kernel_that_does_not_fit_its_gpu_has_no_cause() -> None:
    """The verdict names the limit that it breaks, and no figure compares with none."""
    assert advise(static("a", load()), static("b", load(), warps=32, registers=64))[0].cause == "occupancy lost"
    assert advise(static("a", load()), static("b", load(), warps=0, registers=64)) == ()


def test_a_cause_is_outweighed_where_the_whole_became_faster() -> None:
    """From scattered stores to a tile with conflicts is a gain, and the conflicts are worth a word nevertheless."""
    wavefronts = load(op="shared_load", times=4.0), load(op="shared_store", times=4.0)
    conflicts = [msgspec.structs.replace(one, wavefronts=8.0, sectors=None) for one in wavefronts]
    free = [msgspec.structs.replace(one, wavefronts=1.0, sectors=None) for one in wavefronts]
    scattered = static("a", load(sectors=32.0), *free)
    found = advise(scattered, static("b", load(), *conflicts))
    assert [(one.cause, one.outweighed) for one in found] == [("bank conflicts", True)]
    same = advise(static("c", load(), *free), static("b", load(), *conflicts))
    assert [(one.cause, one.outweighed) for one in same] == [("bank conflicts", False)]


STORE = load(op="global_store", times=1.0)
UNKNOWN = Access(op="global_load", bytes=4, times=78.0)
"""Through a pointer that was spilled: nothing tells where it leads."""


def test_whole_numbers_keep_every_digit() -> None:
    for before, after, text in (
        (4096, 4224, "4096 -> 4224"), (64.0, 2928.0, "64 -> 2928"), (4.923, 242.34, "4.92 -> 242"),
        (12.5, 16383.6, "12.5 -> 16384"), (0, 1_234_567, "0 -> 1.23 M"),
    ):  # fmt: skip
        assert str(change("it", before, after)) == f"it {text}"


def walked(*accesses: Access) -> WarpEstimate:
    return dry({"fp32": 20.0, "local_load": 564.0}, *accesses)


def of_warps(run: WarpEstimate, warps: int) -> WarpEstimate:
    return msgspec.structs.replace(run, warps=warps)


def test_figures_are_scaled_to_the_work_that_a_warp_writes_or_reads() -> None:
    """What waits in memory for a second pass is no result, and a double is one element as a float is."""
    two, data = load(op="global_store", times=2.0), walked(UNKNOWN, load(times=50.0))
    written, double = walked(load(times=1.0), STORE), load(sectors=8.0, op="global_store", times=1, size=8)
    for before, after, scale in (
        (walked(STORE), walked(two), 0.5),
        (walked(load(times=1.0)), walked(load(times=2.0)), 0.5),
        (walked(STORE), walked(msgspec.structs.replace(two, scratch=two.distinct / 2)), 1.0),
        (walked(STORE), dry({"fp64": 100.0}, double), 1.0),
        # where data decide about addresses equal arguments are equal work
        (walked(load(times=128.0), STORE), walked(load(times=50.0), STORE, UNKNOWN), 1.0),
        (of_warps(data, 256), of_warps(data, 64), 0.25),
        (of_warps(written, 64), of_warps(written, 256), 1.0),
    ):  # fmt: skip
        assert scale_of(before, after) == scale


# --- causes that the machine code proves --------------------------------------------------------------


def tile(wavefronts: float) -> tuple[Access, Access]:
    """A store to shared memory and the load behind it, with so many passes each."""
    accesses = load(op="shared_load", times=8.0), load(op="shared_store", times=8.0)
    store, read = (msgspec.structs.replace(one, wavefronts=wavefronts, sectors=None) for one in accesses)
    return store, read


def launched(code: str, wavefronts: float, integers: float) -> Side:
    executed = {"integer": integers, "global_load": 4.0, "global_store": 1.0, "shared_load": 8.0, "shared_store": 8.0}
    accesses = load(), *tile(wavefronts), load(op="global_store", times=1.0)
    return side(record(code), estimate=dry(executed, *accesses, launched=True))


def test_conflicts_of_known_accesses_are_a_proven_cause() -> None:
    for wavefronts, integers, found in ((8.0, 200.0, True), (16.0, 100.0, True), (1.0, 100.0, False)):
        proven = proven_causes(launched("a", 1.0, 200.0), launched("b", wavefronts, integers))
        assert [one.what for one in proven] == ["wavefronts per shared-memory access"] * found


ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "explanation" / "why-slower.md").read_text(encoding="utf-8")
CAUSES = list(causes.BY_KEY.values())


def test_the_manual_has_every_cause_with_remedy_and_example_and_no_other() -> None:
    for cause in CAUSES:
        example = f"[{cause.family}](../../example_suite/kernels/{cause.family}.cu)"
        assert f"| {cause.key} | {cause.says} | {cause.remedy} | {example} | " in TEXT
        assert (ROOT / "example_suite" / "kernels" / f"{cause.family}.cu").is_file()
    rows = [line for line in TEXT.splitlines() if "](../../example_suite/kernels/" in line and line.startswith("| ")]
    assert len(rows) == len(CAUSES) > 10


def test_every_cause_that_a_rule_names_has_words() -> None:
    rules = [path.read_text(encoding="utf-8") for path in (ROOT / "pytest_gpuperf" / "advise").glob("*_rules.py")]
    named = {name for text in rules for name in re.findall(r'Finding\("([^"]+)"', text)}
    assert len(named) > 10
    assert named <= causes.BY_KEY.keys()
