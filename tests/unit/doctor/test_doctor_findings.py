"""How findings read, and what they add up to."""

from __future__ import annotations

import json

from pytest_gpuperf.doctor.findings import ProbeResult, as_json, as_text, is_ready

FINDINGS = [
    ProbeResult("static", "NVRTC", "ok", "13.0.88"),
    ProbeResult("time", "driver", "missing", "none", "install one", required=True),
    ProbeResult("time", "CUPTI", "missing", "not installed", "pip install it"),
    ProbeResult("counters", "ncu", "warn", "odd"),
]


def test_only_a_required_thing_that_is_missing_spoils_an_area():
    assert is_ready("static", FINDINGS)
    assert not is_ready("time", FINDINGS)
    assert is_ready("time", FINDINGS[2:])
    assert is_ready("counters", FINDINGS)


def test_text_has_a_line_per_finding_its_advice_and_a_closing_line():
    assert as_text(FINDINGS, "1.2.3").splitlines() == [
        "pytest-gpuperf 1.2.3",
        "",
        "Static evidence (registers, spills, occupancy; needs no GPU)",
        "  ok       NVRTC   13.0.88",
        "",
        "Time",
        "  missing  driver  none",
        "                   -> install one",
        "  missing  CUPTI   not installed",
        "                   -> pip install it",
        "",
        "Counters (Nsight Compute)",
        "  warn     ncu     odd",
        "",
        "Can be measured here: static yes, time no, counters yes",
    ]


def test_json_carries_the_same():
    document = json.loads(as_json(FINDINGS, "1.2.3"))
    assert document["version"] == "1.2.3"
    assert document["ready"] == {"static": True, "time": False, "counters": True}
    assert [finding["name"] for finding in document["findings"]] == ["NVRTC", "driver", "CUPTI", "ncu"]
    assert document["findings"][1]["required"] is True
