"""docs/reference/verdicts.md: verdicts, what each does to its test, and exit statuses."""

from __future__ import annotations

import re

from source_text import NOTE, attribute_docs, in_line, table

from pytest_gpuperf.cli import command_line
from pytest_gpuperf.config.options import Options
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.session import end_of_run
from pytest_gpuperf.session.exit_policy import fails

HEAD = f"""\
# Verdicts and exit statuses

{NOTE}

- [Verdicts](#verdicts)
- [Exit statuses of pytest](#exit-statuses-of-pytest)
- [Exit statuses of gpuperf](#exit-statuses-of-gpuperf)

## Verdicts

What the gate may say of a workload: of its static evidence for an architecture, of its counters and of its time on
a GPU model. *Test* says what the verdict does to the test.
"""
ASKED_FOR = {
    "**fail** under `CI`, and with `--gpuperf-missing=fail`; else a warning": Options(missing="fail"),
    "a warning; **fail** with `--gpuperf-missing=fail`": Options(unreached="fail"),
    "a warning; **fail** with `--gpuperf-inconclusive=fail`": Options(inconclusive="fail"),
    "pass, with a remark; **fail** with `--gpuperf-strict`": Options(strict=True),
}
"""Options that make one verdict or the other fail, by what is said of it."""
STATUSES = """\
## Exit statuses of pytest

0 to 5 are pytest's own. 1 includes regressions; 4 is a flag, setting or marker that is wrong, or a GPU that
`--gpuperf-require-gpu` did not find.
"""
COMMAND = "## Exit statuses of gpuperf\n"


def page() -> str:
    """The whole page."""
    words = attribute_docs(Verdict)
    rows = [[verdict.value, _effect(verdict), words[verdict.name]] for verdict in Verdict]
    constants = attribute_docs(end_of_run)
    statuses = [[str(getattr(end_of_run, name)), constants[name]] for name in constants if name.startswith("EXIT_")]
    said = re.search(r"Exit status: (.*)", in_line(command_line.__doc__))
    assert said
    parts = [
        HEAD, table(["verdict", "test", "meaning"], rows), "", STATUSES, table(["status", "meaning"], statuses), "",
        COMMAND, said[1], "",
    ]  # fmt: skip
    return "\n".join(parts)


def _effect(verdict: Verdict) -> str:
    """What it does to its test, by asking the policy."""
    judgement = Judgement(key=Key("test_x.py", "test_x", "x"), target="sm_90", kind="static", verdict=verdict)
    if fails(judgement, Options()):
        return "**fail**"
    for words, options in ASKED_FOR.items():
        if fails(judgement, options):
            return words
    return "pass" if verdict.is_pass else "a warning"
