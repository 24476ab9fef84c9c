"""What merging keeps besides whole records: fields of the manifest, rounds of equal work, the past of a record."""

from __future__ import annotations

import msgspec
import pytest
from baseline_samples import H200, make_host_time, make_key, make_session, make_time

from pytest_gpuperf.baselines.file_types import TimeFile
from pytest_gpuperf.baselines.manifest import Manifest
from pytest_gpuperf.baselines.rounding import rounded_beside
from pytest_gpuperf.baselines.schema_version import SCHEMA_VERSION
from pytest_gpuperf.baselines.three_way import Versions, merge_manifests, merge_times
from pytest_gpuperf.model.beside_figures import Beside
from pytest_gpuperf.model.evidence import Identity, TimeRecord

KEY = make_key()


def manifest_of(*targets: str, profile: str = "") -> Manifest:
    archs = tuple(one for one in targets if one.startswith("sm_"))
    models = tuple(one for one in targets if one not in archs)
    return Manifest(schema=2, architectures=archs, gpu_models=models, profile=profile)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("tight", "tight", "loose", "loose"), ("tight", "loose", "tight", "loose"), (None, "loose", "tight", "loose"),
        ("tight", "loose", "standard", "loose"), ("tight", "tight", "tight", "tight"),
    ],
)  # fmt: skip
def test_a_field_of_the_manifest_is_what_one_side_changed_else_ours(
    base: str | None, ours: str, theirs: str, merged: str
) -> None:
    of = [None if one is None else manifest_of("sm_90", profile=one) for one in (base, ours, theirs)]
    assert merge_manifests(Versions(*of)).profile == merged


def test_targets_of_a_manifest_are_in_their_order() -> None:
    ours, theirs = manifest_of("sm_90", "nvidia-h200"), manifest_of("sm_100", "sm_90", "a-gpu")
    assert merge_manifests(Versions(None, ours, theirs)).targets == ("sm_90", "sm_100", "a-gpu", "nvidia-h200")


def test_an_architecture_that_one_side_asked_for_is_not_named_by_kernels_alone() -> None:
    asked = manifest_of("sm_80", "sm_90")
    named, other = (msgspec.structs.replace(asked, named_by_kernels=(one,)) for one in ("sm_80", "sm_90"))
    for base in (None, manifest_of("sm_90")):
        for sides in ((asked, named), (named, asked), (named, other)):
            assert merge_manifests(Versions(base, *sides)).named_by_kernels == ()
        assert merge_manifests(Versions(base, named, manifest_of("sm_90"))).named_by_kernels == ("sm_80",)
        assert merge_manifests(Versions(base, named, named)).named_by_kernels == ("sm_80",)


def timed(number: int, record: TimeRecord | None = None, **changes: object) -> TimeFile:
    session = make_session(number)
    made = record or make_time(session, **changes)
    return TimeFile(target=H200, sessions=(session,), tests={KEY.test: {KEY.workload: made}}, schema=SCHEMA_VERSION)


def merged_times(base: TimeFile | None, ours: TimeFile | None, theirs: TimeFile | None):
    return merge_times(Versions(base, ours, theirs), H200, KEY.module)


def test_rounds_of_equal_work_stand_side_by_side_whatever_was_counted() -> None:
    beside = Beside(memory_bytes=512)
    found = merged_times(timed(1), timed(2, counters={"a": 1.0}), timed(3, counters={"a": 2.0}, beside=beside))
    assert (found.changed_by_both, found.removed_by_one) == ((), ())
    assert isinstance(found.file, TimeFile)
    assert (found.file.target, found.file.schema) == (H200, SCHEMA_VERSION)
    record = found.file.tests[KEY.test][KEY.workload]
    assert {one.session for one in record.rounds} == {make_session(2).id, make_session(3).id}
    assert {one.id for one in found.file.sessions} == {make_session(2).id, make_session(3).id}


def test_callables_that_both_sides_recorded_are_ours_and_to_be_recorded_anew() -> None:
    """Their code is not known, so equal identities do not say that both ran the same."""
    identity = Identity(code="", launch="callable")
    base, ours, theirs = (timed(number, identity=identity, cubin="", kernel="") for number in (1, 2, 3))
    found = merged_times(base, ours, theirs)
    assert (found.changed_by_both, found.file) == ((KEY,), ours)


@pytest.mark.parametrize("swapped", [False, True], ids=["by ours", "by theirs"])
def test_counters_and_figures_beside_the_time_are_of_the_side_that_changed_them(swapped: bool) -> None:
    def recorded(number: int, counters: float, memory: int, accuracy: float) -> TimeFile:
        beside = Beside(memory_bytes=memory, accuracy=accuracy)
        ranges = {"a": (counters, counters + 1)}
        return timed(number, counters={"a": counters}, counter_ranges=ranges, beside=beside)

    changed, kept = recorded(2, 2.0, 1024, 0.5), recorded(3, 1.0, 512, 0.25)
    found = merged_times(recorded(1, 1.0, 512, 0.5), *((kept, changed) if swapped else (changed, kept)))
    assert isinstance(found.file, TimeFile)
    record = found.file.tests[KEY.test][KEY.workload]
    assert (record.counters, record.counter_ranges) == ({"a": 2.0}, {"a": (2.0, 3.0)})
    assert record.beside == Beside(memory_bytes=1024, accuracy=0.25)
    assert {one.session for one in record.rounds} == {make_session(2).id, make_session(3).id}


@pytest.mark.parametrize("cache", ["cold", "warm"])
@pytest.mark.parametrize("known", [True, False], ids=["parted known", "parted unknown"])
def test_a_counter_or_figure_that_both_sides_changed_stays_as_ours(known: bool, cache: str) -> None:
    def recorded(number: int, memory: int, **counters: float) -> TimeFile:
        ranges = {name: (value, value + 1) for name, value in counters.items()}
        beside = Beside(memory_bytes=memory)
        return timed(number, counters=counters, counter_ranges=ranges, beside=beside, cache=cache)

    base = recorded(1, 512, a=1.0, b=1.0, c=1.0)
    ours, theirs = recorded(2, 1024, a=2.0, b=2.0, c=1.0), recorded(3, 2048, a=3.0, b=1.0, c=3.0, d=4.0)
    found = merged_times(base if known else None, ours, theirs)
    assert isinstance(found.file, TimeFile)
    record = found.file.tests[KEY.test][KEY.workload]
    assert record.counters == {"a": 2.0, "b": 2.0, "c": 3.0 if known else 1.0, "d": 4.0}
    assert record.counter_ranges == {name: (value, value + 1) for name, value in record.counters.items()}
    assert record.beside == Beside(memory_bytes=1024)


def test_records_of_other_work_are_ours_and_to_be_recorded_anew() -> None:
    found = merged_times(timed(1), timed(2), timed(3, timer="graph"))
    assert found.changed_by_both == (KEY,)
    assert isinstance(found.file, TimeFile)
    assert found.file.tests[KEY.test][KEY.workload] == timed(2).tests[KEY.test][KEY.workload]


def test_what_one_side_removed_and_the_other_changed_is_as_on_our_side() -> None:
    found = merged_times(timed(1), None, timed(3))
    assert (found.file, found.changed_by_both, found.removed_by_one) == (None, (), (KEY,))
    kept = merged_times(timed(1), timed(2), None)
    assert isinstance(kept.file, TimeFile)
    assert kept.removed_by_one == (KEY,)
    assert merged_times(None, None, timed(3)).file == timed(3)
    assert merged_times(timed(1), None, timed(1)).file is None


def test_time_of_the_cpu_is_rounded() -> None:
    found = rounded_beside(Beside(host=make_host_time())).host
    assert found is not None
    assert (found.time_ns, found.ratios) == (8123.0, (1.2346, 1.25, 1.24))
    assert rounded_beside(Beside(memory_bytes=1)) == Beside(memory_bytes=1)
