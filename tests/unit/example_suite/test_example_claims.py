"""Every claim of the example families is asserted once, says what it must, and has bounds that can be missed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loaded_scripts import load_script

SUITE = Path(__file__).parents[3] / "example_suite"
WITHOUT_A_FILE = {"HW", "thresholds", "cfd_real_kernels"}
"""Families without kernels of their own: other families' kernels show what they claim."""
ELSEWHERE = {"SM-01", "SM-04", "SM-05", "RP-05"}
"""Claims that are about another family's kernels."""
SHIFT = 0.3
"""A figure that is off by this share has to miss its bounds."""


def loaded() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SUITE)  # type: ignore[no-untyped-call]
        load_script(SUITE / "verdicts.py")
        return load_script(SUITE / "claims.py", "example_suite_claims")


claims = loaded()
KNOWN = claims.load_claims()


def mentions(text: str) -> Counter[str]:
    """How often each quoted claim id occurs."""
    return Counter(re.findall(r'"([A-Z][A-Z0-9]*-\d{2,})"', text))


# --- the data ------------------------------------------------------------------------------------


def test_every_claim_is_named_once_by_its_family() -> None:
    by_file = {file.name: mentions(file.read_text(encoding="utf-8")) for file in sorted(SUITE.glob("test_*.py"))}
    assert sum(by_file.values(), Counter()) == Counter(KNOWN.keys())
    files = {claim_id: file for file, ids in by_file.items() for claim_id in ids}
    own = {claim.id: f"test_{claim.family}.py" for claim in KNOWN.values() if claim.family not in WITHOUT_A_FILE}
    assert {claim_id for claim_id, file in own.items() if files[claim_id] != file} == ELSEWHERE
    assert mentions('claim("S1-01", x)\nclaim("S1-01", y)') == Counter({"S1-01": 2}) != Counter({"S1-01"})


def test_ids_are_unique_and_a_file_has_one_family() -> None:
    files = sorted((SUITE / "claim_data").glob("*.json"))
    lines = [line | {"file": file.stem} for file in files for line in json.loads(file.read_text(encoding="utf-8"))]
    assert [name for name, times in Counter(line["id"] for line in lines).items() if times > 1] == []
    assert [line["id"] for line in lines if line["family"] != line["file"]] == []


def test_a_claim_has_what_its_origin_needs() -> None:
    wrong = set()
    for claim in KNOWN.values():
        fine = claim.kind in claims.KINDS and claim.text and "\n" not in claim.text
        fine &= all(one.text.count("{}") == 1 for one in claim.because)
        if claim.origin == "prediction":
            fine &= not claim.document and not claim.place and claim.here is not None
        else:
            fine &= claim.origin in ("document", "erratum") and claim.document in claims.DOCUMENTS
            fine &= bool(claim.place) and claim.shown in ("text", "table", "picture")
            fine &= claim.here is not None if claim.says is not None else bool(claim.why)
            fine &= bool(claim.why) or claim.origin != "erratum"
        wrong |= set() if fine else {claim.id}
    assert wrong == set()


def misses_when_shifted(here: Any) -> bool:
    """Whether the middle figure, a share up or down, or one up or down near zero and for a count, is outside."""
    middle = (here.low + here.high) / 2
    by = 1.0 if here.low == here.high or here.low <= 0 <= here.high else SHIFT * abs(middle)
    return not here.holds(middle + by) and not here.holds(middle - by)


def test_a_figure_that_is_off_by_a_third_misses_its_bounds() -> None:
    assert [misses_when_shifted(claims.Found(*one)) for one in ((32, 32), (1.2, 2.8), (0, 0.5), (0, 3))] == [
        True, False, True, False,
    ]  # fmt: skip
    of_claims = [(claim.id, str(claim.here)) for claim in KNOWN.values() if claim.here is not None
                 and not misses_when_shifted(claim.here)]  # fmt: skip
    of_reasons = [(claim.id, str(one.here)) for claim in KNOWN.values() for one in claim.because
                  if not misses_when_shifted(one.here)]  # fmt: skip
    assert (of_claims, of_reasons) == ([], [])


# --- the fixture ---------------------------------------------------------------------------------


def line(**of: Any) -> dict[str, Any]:
    """A claim about a time: twice as fast."""
    return {
        "id": "XX-01", "kind": "time", "family": "xx", "text": "Twice as fast.", "document": "BLOG", "place": "2",
        "shown": "text", "gpu": "A100", "unit": "x", "says": 2.0, "neutral": 1, "here": [1.9, 2.1], **of,
    }  # fmt: skip


class Case:
    """A checker of one made-up claim, and what it put on record."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, gpu: str = "nvidia-h200", *, survey: bool = False, **of: Any):
        self.outcomes: list[dict[str, Any]] = []
        self._one = claims._claim(line(**of))
        monkeypatch.setattr(claims, "load_claims", lambda: {"XX-01": self._one})
        self.claim = claims.ClaimChecker(self._record, lambda: gpu, survey=survey)

    def _record(self, name: str, value: object) -> None:
        assert name == claims.PROPERTY
        self.outcomes.append(json.loads(str(value)))


@pytest.mark.parametrize(
    ("of", "gpu", "figure", "outcome"),
    [
        ({}, "nvidia-h200", 2.05, {"verdict": "reproduced", "measured": 2.05, "gpu": "nvidia-h200"}),
        ({"here": [1.4, 1.5]}, "nvidia-h200", 1.45, {"verdict": "direction holds, less", "measured": 1.45}),
        ({}, "nvidia-l4", 3.0, {"verdict": "direction holds, more", "measured": 3.0, "gpu": "nvidia-l4"}),
        ({"kind": "counter", "chip": True}, "nvidia-l4", 3.0, {"measured": 3.0}),
        ({"kind": "static"}, "nvidia-l4", 2.0, {"verdict": "reproduced"}),
        ({"survey": True}, "nvidia-h200", 3.0, {"verdict": "direction holds, more"}),
    ],
    ids=["time", "own bounds", "time elsewhere", "busy chip elsewhere", "code elsewhere", "survey"],
)
def test_a_figure_is_filed_with_its_verdict(
    monkeypatch: pytest.MonkeyPatch, of: dict[str, Any], gpu: str, figure: float, outcome: dict[str, Any]
) -> None:
    case = Case(monkeypatch, gpu=gpu, **of)
    case.claim("XX-01", figure)
    (filed,) = case.outcomes
    assert {"id": "XX-01", **outcome}.items() <= filed.items()
    assert ("gpu" in filed) == ("kind" not in of or "chip" in of)


@pytest.mark.parametrize(
    ("of", "gpu", "figure"),
    [
        ({}, "nvidia-h200", 1.89), ({}, "nvidia-h200", 2.11), ({}, "nvidia-h200", 0.0),
        ({"kind": "static"}, "nvidia-l4", 3.0), ({"kind": "counter", "chip": True}, "nvidia-h200", 3.0),
    ],
)  # fmt: skip
def test_a_figure_outside_its_bounds_fails_and_quotes_the_claim(
    monkeypatch: pytest.MonkeyPatch, of: dict[str, Any], gpu: str, figure: float
) -> None:
    """A time and how busy a chip is bind on one GPU, code on all."""
    case = Case(monkeypatch, gpu=gpu, **of)
    with pytest.raises(AssertionError) as failure:
        case.claim("XX-01", figure)
    message = str(failure.value)
    assert message.startswith(f"XX-01 has changed: measured {figure:g}, found before 1.9 to 2.1.")
    assert message.endswith("The claim (A100): Twice as fast.")
    assert [outcome["measured"] for outcome in case.outcomes] == [figure]


def test_a_reason_is_asserted_and_filed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(monkeypatch, because=[{"text": "{} blocks per ns are launched", "here": [1.6, 1.7]}])
    case.claim("XX-01", 2.0, because=[1.66])
    assert case.outcomes[0]["because"] == [1.66]
    with pytest.raises(AssertionError, match=r"measured 1\.8, found before 1\.6 to 1\.7"):
        case.claim("XX-01", 2.0, because=[1.8])
    with pytest.raises(TypeError, match="XX-01 has 1 reasons in claim_data, not 0"):
        case.claim("XX-01", 2.0)


@pytest.mark.parametrize(
    ("of", "measured", "verdict"),
    [
        ({"origin": "prediction"}, 2.0, "our prediction"), ({"origin": "prediction"}, None, "our prediction"),
        ({"origin": "erratum", "why": "a misprint"}, 2.0, "document's erratum"),
        ({"says": None, "neutral": None, "why": "no figure"}, None, "not comparable here"),
        ({}, None, "not measured"), ({}, 2.0, "reproduced"), ({}, 0.9, "contradicted"),
    ],
)  # fmt: skip
def test_a_verdict_of_a_claim(of: dict[str, Any], measured: float | None, verdict: str) -> None:
    assert claims._claim(line(**of)).verdict(measured).value == verdict


@pytest.mark.parametrize(
    ("misuse", "error", "words"),
    [
        (lambda claim: claim("XX-01", float("nan")), ValueError, "is no measured figure"),
        (lambda claim: claim.not_comparable("XX-01"), TypeError, "XX-01 is comparable by claim_data"),
        (lambda claim: claim("XX-99", 1.0), KeyError, "XX-99"),
    ],
)
def test_misuse_is_an_error(
    monkeypatch: pytest.MonkeyPatch, misuse: Callable[[Any], None], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        misuse(Case(monkeypatch).claim)
    case = Case(monkeypatch, says=None, neutral=None, here=None, why="the talk has no listing")
    case.claim.not_comparable("XX-01")
    assert case.outcomes == [{"id": "XX-01", "verdict": "not comparable here", "measured": None}]
    with pytest.raises(TypeError, match="has no `here` in claim_data"):
        case.claim("XX-01", 2.0)
