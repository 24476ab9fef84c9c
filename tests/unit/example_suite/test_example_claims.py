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


def named() -> dict[str, Counter[str]]:
    """By test file."""
    return {file.name: mentions(file.read_text(encoding="utf-8")) for file in sorted(SUITE.glob("test_*.py"))}


# --- the data ------------------------------------------------------------------------------------


def test_every_claim_is_named_exactly_once_and_no_other_is() -> None:
    assert sum(named().values(), Counter()) == Counter(KNOWN.keys())


def test_a_claim_is_named_by_its_family() -> None:
    files = {claim_id: file for file, ids in named().items() for claim_id in ids}
    own = {claim.id: f"test_{claim.family}.py" for claim in KNOWN.values() if claim.family not in WITHOUT_A_FILE}
    assert {claim_id for claim_id, file in own.items() if files[claim_id] != file} == ELSEWHERE


def test_a_missing_or_doubled_mention_is_seen() -> None:
    assert mentions('claim("S1-01", x)') != Counter({"S1-01": 1, "S1-02": 1})
    assert mentions('claim("S1-01", x)\nclaim("S1-01", y)') != Counter({"S1-01"})


def test_ids_are_unique_and_a_file_has_one_family() -> None:
    files = sorted((SUITE / "claim_data").glob("*.json"))
    lines = [line | {"file": file.stem} for file in files for line in json.loads(file.read_text(encoding="utf-8"))]
    assert [name for name, times in Counter(line["id"] for line in lines).items() if times > 1] == []
    assert [line["id"] for line in lines if line["family"] != line["file"]] == []


def test_a_claim_of_a_document_says_where_it_stands() -> None:
    said = [claim for claim in KNOWN.values() if claim.origin != "prediction"]
    assert [claim.id for claim in said if claim.document not in claims.DOCUMENTS] == []
    assert [claim.id for claim in said if not claim.place or claim.shown not in ("text", "table", "picture")] == []


def test_what_is_compared_has_bounds_and_what_is_not_says_why() -> None:
    said = [claim for claim in KNOWN.values() if claim.origin != "prediction"]
    assert [claim.id for claim in said if claim.says is not None and claim.here is None] == []
    assert [claim.id for claim in said if claim.says is None and not claim.why] == []
    assert [claim.id for claim in said if claim.origin == "erratum" and not claim.why] == []


def test_a_prediction_is_no_documents() -> None:
    own = [claim for claim in KNOWN.values() if claim.origin == "prediction"]
    assert own
    assert [claim.id for claim in own if claim.document or claim.place or claim.here is None] == []


def test_kinds_and_origins_are_known() -> None:
    assert {claim.kind for claim in KNOWN.values()} <= set(claims.KINDS)
    assert {claim.origin for claim in KNOWN.values()} <= {"document", "erratum", "prediction"}


def test_a_text_is_one_line() -> None:
    assert [claim.id for claim in KNOWN.values() if not claim.text or "\n" in claim.text] == []


def test_a_reason_has_a_figure_in_its_words() -> None:
    assert [
        (claim.id, one.text) for claim in KNOWN.values() for one in claim.because if one.text.count("{}") != 1
    ] == []


def misses_when_shifted(here: Any) -> bool:
    """Whether the middle figure, a share up or down, or one up or down near zero and for a count, is outside."""
    middle = (here.low + here.high) / 2
    by = 1.0 if here.low == here.high or here.low <= 0 <= here.high else SHIFT * abs(middle)
    return not here.holds(middle + by) and not here.holds(middle - by)


@pytest.mark.parametrize(
    ("low", "high", "misses"),
    [
        (32, 32, True),
        (0, 0, True),
        (1.8, 2.2, True),
        (1.2, 2.8, False),
        (0, 0.5, True),
        (0, 3, False),
        (-2.2, -1.8, True),
    ],
)
def test_wide_bounds_are_seen(low: float, high: float, misses: bool) -> None:
    assert misses_when_shifted(claims.Found(low, high)) is misses


def test_a_figure_that_is_off_by_a_third_misses_its_bounds() -> None:
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


Check = Callable[..., Any]


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


def test_a_figure_is_filed_with_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(monkeypatch)
    case.claim("XX-01", 2.05)
    assert case.outcomes == [{"id": "XX-01", "verdict": "reproduced", "measured": 2.05, "gpu": "nvidia-h200"}]


def test_a_verdict_is_the_documents_and_the_bounds_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(monkeypatch, here=[1.4, 1.5])
    case.claim("XX-01", 1.45)
    assert [outcome["verdict"] for outcome in case.outcomes] == ["direction holds, less"]
    with pytest.raises(AssertionError, match=r"XX-01 has changed: measured 2, found before 1\.4 to 1\.5"):
        case.claim("XX-01", 2.0)


@pytest.mark.parametrize("figure", [1.89, 2.11, 0.0])
def test_a_figure_outside_its_bounds_fails_and_quotes_the_claim(monkeypatch: pytest.MonkeyPatch, figure: float) -> None:
    case = Case(monkeypatch)
    with pytest.raises(AssertionError) as failure:
        case.claim("XX-01", figure)
    message = str(failure.value)
    assert message.startswith(f"XX-01 has changed: measured {figure:g}, found before 1.9 to 2.1.")
    assert message.endswith("The claim (A100): Twice as fast.")
    assert [outcome["measured"] for outcome in case.outcomes] == [figure]


@pytest.mark.parametrize("figure", [float("nan"), float("inf")])
def test_what_is_no_number_is_no_figure(monkeypatch: pytest.MonkeyPatch, figure: float) -> None:
    with pytest.raises(ValueError, match="is no measured figure"):
        Case(monkeypatch).claim("XX-01", figure)


def test_a_reason_is_asserted_and_filed(monkeypatch: pytest.MonkeyPatch) -> None:
    because = [{"text": "{} blocks per ns are launched", "here": [1.6, 1.7]}]
    case = Case(monkeypatch, because=because)
    case.claim("XX-01", 2.0, because=[1.66])
    assert case.outcomes[0]["because"] == [1.66]
    with pytest.raises(AssertionError, match=r"measured 1\.8, found before 1\.6 to 1\.7"):
        case.claim("XX-01", 2.0, because=[1.8])
    with pytest.raises(TypeError, match="XX-01 has 1 reasons in claim_data, not 0"):
        case.claim("XX-01", 2.0)


def test_what_this_run_did_not_look_at_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def figure() -> float:
        raise claims.NotCollected("dram__bytes.sum")

    case = Case(monkeypatch)
    case.claim("XX-01", figure)
    (outcome,) = case.outcomes
    assert (outcome["verdict"], outcome["measured"]) == ("not measured", None)
    assert outcome["missing"].startswith("dram__bytes.sum was not collected: needs --gpuperf-ncu=")


def test_times_bind_on_one_gpu_and_code_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(monkeypatch, gpu="nvidia-l4")
    case.claim("XX-01", 3.0)
    assert [(outcome["measured"], outcome["gpu"]) for outcome in case.outcomes] == [(3.0, "nvidia-l4")]
    code = Case(monkeypatch, gpu="nvidia-l4", kind="static")
    with pytest.raises(AssertionError, match="XX-01 has changed"):
        code.claim("XX-01", 3.0)
    assert "gpu" not in code.outcomes[0]


def test_how_busy_a_chip_is_binds_on_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    Case(monkeypatch, gpu="nvidia-l4", kind="counter", chip=True).claim("XX-01", 3.0)
    with pytest.raises(AssertionError, match="XX-01 has changed"):
        Case(monkeypatch, gpu="nvidia-h200", kind="counter", chip=True).claim("XX-01", 3.0)


def test_a_survey_files_figures_and_asserts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(monkeypatch, survey=True)
    case.claim("XX-01", 3.0)
    assert [outcome["verdict"] for outcome in case.outcomes] == ["direction holds, more"]


@pytest.mark.parametrize(
    ("of", "measured", "verdict"),
    [
        ({"origin": "prediction"}, 2.0, "our prediction"),
        ({"origin": "prediction"}, None, "our prediction"),
        ({"origin": "erratum", "why": "a misprint"}, 2.0, "document's erratum"),
        ({"says": None, "neutral": None, "why": "no figure"}, None, "not comparable here"),
        ({}, None, "not measured"),
        ({}, 2.0, "reproduced"),
        ({}, 0.9, "contradicted"),
    ],
)
def test_a_verdict_of_a_claim(of: dict[str, Any], measured: float | None, verdict: str) -> None:
    assert claims._claim(line(**of)).verdict(measured).value == verdict


def test_what_is_not_comparable_is_filed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(monkeypatch, says=None, neutral=None, here=None, why="the talk has no listing")
    case.claim.not_comparable("XX-01")
    assert case.outcomes == [{"id": "XX-01", "verdict": "not comparable here", "measured": None}]
    with pytest.raises(TypeError, match="has no `here` in claim_data"):
        case.claim("XX-01", 2.0)


def test_what_is_comparable_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="XX-01 is comparable by claim_data"):
        Case(monkeypatch).claim.not_comparable("XX-01")


def test_an_unknown_claim_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyError):
        Case(monkeypatch).claim("XX-99", 1.0)
