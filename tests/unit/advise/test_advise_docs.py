"""docs/explanation/why-slower.md has every cause that advice may name, in the words of the data."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_gpuperf.advise import causes

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
