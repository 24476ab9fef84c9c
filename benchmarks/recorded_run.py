"""A pytest plugin (``-p recorded_run``): times, counters and peaks of an H200, for a run of the suite without a GPU.

Every workload of the example suite gets the time that the baselines have of it and the counters that
``tests/replays/counters`` has; the GPU that is not there gets the model's name and the peaks that the committed
outcomes name.  What was not recorded is asked of the GPU as ever, and a test ends where it first needs data from it.

With ``--siblings-in-place`` each test runs once per pair of ``pairs.json``: the optimised workload then shows the time,
the counters and the static figures of its naive sibling, and the file says what every claim's assertion said.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.device.gpu import Gpu
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord, mean_time_ns
from pytest_gpuperf.test_record import CountersMissing
from pytest_gpuperf.workload.measurement import Measurement

ROOT = Path(__file__).parent.parent
FILE = ROOT / "tests" / "replays" / "counters" / "nvidia-h200.json"
OPTION = "--recorded-counters"
PEAKS = ROOT / "example_suite" / "outcomes" / "nvidia-h200.json"
IN_PLACE = "--siblings-in-place"


class Recording(NamedTuple):
    gpu: str
    """Model of the GPU, as baselines are called after it."""
    ncu: str
    counters: Mapping[str, Mapping[str, Mapping[str, float]]]
    """By test, workload and metric; without those that ncu had no value for."""


def read(file: Path) -> Recording:
    """What ``benchmarks/record_claim_counters.py`` wrote."""
    content = json.loads(file.read_text(encoding="utf-8"))
    counters = {
        test: {
            workload: {
                metric: value for metric, value in zip(content["metrics"], values, strict=True) if value is not None
            }
            for workload, values in workloads.items()
        }
        for test, workloads in content["workloads"].items()
    }
    return Recording(content["gpu"], content["ncu"], counters)


def key_of(test: str, workload: str) -> Key:
    """``test`` as pytest calls it: ``example_suite/test_matmul.py::test_small_products``."""
    module, _, function = test.partition("[")[0].partition("::")
    return Key(module=module, test=function, workload=workload)


def time_of(store: BaselineStore, gpu: str, test: str, workload: str) -> TimeRecord | None:
    """From the baselines; None without rounds."""
    record = store.time(gpu, key_of(test, workload))
    return record if record is not None and record.rounds else None


class Unrecorded(float):
    """A time that was not recorded, and whatever is computed from it: it fails no comparison, and is no figure.

    Nor is a figure that such comparisons may have chosen, as ``min`` does: the next claim after one is not measured.
    """

    compared: ClassVar[str] = ""
    """The workload of a comparison since the last claim."""

    def __new__(cls, workload: str = "") -> Unrecorded:
        unknown = super().__new__(cls, "nan")
        unknown.workload = workload
        return unknown

    workload: str

    def _same(self, *_: object) -> Unrecorded:
        return self

    def _passes(self, _: object) -> bool:
        Unrecorded.compared = self.workload
        return True

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __abs__ = _same  # type: ignore[assignment]
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _same  # type: ignore[assignment]
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _passes  # type: ignore[assignment]
    __hash__ = float.__hash__


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, type=Path, default=FILE, metavar="FILE", help="the recording to replay")
    parser.addoption(IN_PLACE, type=Path, metavar="FILE", help="replay siblings in place of optimised workloads")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption(IN_PLACE) is not None:
        config.pluginmanager.register(SiblingsInPlace(config.getoption(IN_PLACE)), "siblings-in-place")


@pytest.fixture(scope="session")
def recording(request: pytest.FixtureRequest) -> Recording:
    return read(request.config.getoption(OPTION))


@pytest.fixture(scope="session")
def store() -> BaselineStore:
    return BaselineStore(ROOT / "baselines")


@pytest.fixture
def in_place() -> Mapping[str, str]:
    """Whose figures a workload shows, where not its own."""
    return {}


@pytest.fixture(autouse=True)
def recorded_figures(
    request: pytest.FixtureRequest,
    recording: Recording,
    store: BaselineStore,
    in_place: Mapping[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Times and counters of this test's workloads, or what a run without a GPU has: neither."""
    test = request.node.nodeid.partition("[")[0]
    of_test = recording.counters.get(test, {})

    def counters(measurement: Measurement) -> Mapping[str, float]:
        name = in_place.get(measurement.name, measurement.name)
        if name not in of_test:
            raise CountersMissing(f"{name} was not recorded: run benchmarks/record_claim_counters.py")
        return of_test[name]

    def time_ns(measurement: Measurement) -> float:
        name = in_place.get(measurement.name, measurement.name)
        record = time_of(store, recording.gpu, test, name)
        if record is None:
            return Unrecorded(name)
        return mean_time_ns(record.rounds)

    def found(figure: Any) -> tuple[float | None, str]:
        try:
            value = figure() if callable(figure) else figure
        except (CountersMissing, claims.NotLookedAt) as problem:
            return None, str(problem)
        if workload := value.workload if isinstance(value, Unrecorded) else Unrecorded.compared:
            return None, f"no time of {workload} is recorded for {recording.gpu}"
        return of_figure(value)

    def call(self: Any, claim_id: str, figure: Any, *, because: Sequence[Any] = ()) -> None:
        try:
            check(self, claim_id, figure, because=because)
        finally:
            Unrecorded.compared = ""

    claims = sys.modules["claims"]
    of_figure, check = claims._found, claims.ClaimChecker.__call__
    Unrecorded.compared = ""
    monkeypatch.setattr(claims, "_found", found)
    monkeypatch.setattr(claims.ClaimChecker, "__call__", call)
    monkeypatch.setattr(Measurement, "counters", property(counters))
    monkeypatch.setattr(Measurement, "time_ns", property(time_ns))
    monkeypatch.setattr(Gpu, "slug", recording.gpu, raising=False)
    peaks = json.loads(PEAKS.read_text(encoding="utf-8"))["run"]["peaks"] if PEAKS.exists() else {}
    for name, peak in peaks.items():
        monkeypatch.setattr(Gpu, name, peak)


class SiblingsInPlace:
    """The hooks of a run with siblings in place; no claim ends its test, so that every one of them says its word."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._found: list[dict[str, Any]] = []

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        pairs = [
            pair for pair in sys.modules["pairs"].PAIRS
            if (pair.module, pair.test) == (metafunc.definition.path.name, metafunc.definition.originalname)
        ]  # fmt: skip
        if pairs and "claim" in metafunc.fixturenames:
            metafunc.parametrize("in_place", [{pair.optimised: pair.naive} for pair in pairs], ids=range(len(pairs)))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if "in_place" in getattr(getattr(item, "callspec", None), "params", {})]

    @pytest.fixture(autouse=True)
    def words(
        self, request: pytest.FixtureRequest, in_place: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Keep what the claims' assertions say, by id."""
        checker = sys.modules["claims"].ClaimChecker
        assertion, said = checker._assert, {}
        static: dict[str, Mapping[str, StaticRecord]] = {}
        own_record, init = Measurement._record, Measurement.__init__

        def keep(self: Any, claim: Any, value: float, here: Any, words: str) -> None:
            try:
                assertion(self, claim, value, here, words)
            except AssertionError as problem:
                said.setdefault(claim.id, str(problem))

        def remember(measurement: Measurement, *given: Any) -> None:
            init(measurement, *given)
            static[measurement.name] = measurement.static

        def record(measurement: Measurement) -> StaticRecord:
            measurement.static = static.get(in_place.get(measurement.name, ""), measurement.static)
            return own_record(measurement)

        monkeypatch.setattr(checker, "_assert", keep)
        monkeypatch.setattr(Measurement, "__init__", remember)
        monkeypatch.setattr(Measurement, "_record", record)
        request.node.stash[WORDS] = said

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "call":
            ((optimised, naive),) = item.callspec.params["in_place"].items()  # type: ignore[attr-defined]
            claims = [json.loads(str(value)) for name, value in item.user_properties if name == "gpuperf_claim"]
            ended = call.excinfo.exconly() if call.excinfo is not None and report.failed else ""
            self._found.append({
                "test": item.nodeid.partition("[")[0], "optimised": optimised, "naive": naive,
                "claims": {one["id"]: one["measured"] for one in claims}, "said": item.stash[WORDS], "ended": ended,
            })  # fmt: skip
        return report

    def pytest_sessionfinish(self) -> None:
        self._file.write_text(json.dumps(self._found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


WORDS = pytest.StashKey[dict[str, str]]()
