"""docs/reference/verdicts.md: verdicts, what each does to its test, and exit statuses."""

from __future__ import annotations

import re

from source_text import NOTE, attribute_docs, in_line, table

from pytest_gpuperf.cli import command_line
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.session import end_of_run
from pytest_gpuperf.session.exit_policy import Effect, effect, treatment_of

HEAD = f"""\
# Verdicts and exit statuses

{NOTE}

- [Verdicts](#verdicts)
- [Exit statuses of pytest](#exit-statuses-of-pytest)
- [Exit statuses of gpuperf](#exit-statuses-of-gpuperf)

## Verdicts

A verdict is about a workload's static evidence for an architecture, or about its counters or its time on a GPU model.
*Test* is what the verdict does to the test. `--gpuperf-open=warn` makes warnings of what fails only under `CI`;
under `--gpuperf-advisory` no verdict fails a test.
Other words are in the [glossary](../explanation/glossary.md).
"""
CI = Options(open="fail", ci=True)
"""What is usual under ``CI``."""
FLAGS = {"strict": "--gpuperf-strict", **dict.fromkeys(("undecided", "open", "new"), "--gpuperf-open=fail")}
"""The flag that makes a verdict fail which usually does not, by the field of the options that its rule names."""
EXCEPTIONS = """\
NOT-MEASURED is never more than a warning where counters are missing. It is a warning, too, where a run without a GPU
did not reach a workload because its test needs a GPU first, unless `--gpuperf-open=fail` is given or a GPU is
required.
"""
STATUSES = """\
## Exit statuses of pytest

0 to 5 are pytest's own. 1 includes regressions, and baselines or reports that could not be written; 4 is a flag,
setting or marker that is wrong, or a GPU that `--gpuperf-require-gpu` did not find.
"""
COMMAND = "## Exit statuses of gpuperf\n"


def page() -> str:
    """The whole page."""
    words = attribute_docs(Verdict)
    rows = [[verdict.value, *_effects(verdict), words[verdict.name]] for verdict in Verdict]
    constants = attribute_docs(end_of_run)
    statuses = [[str(getattr(end_of_run, name)), constants[name]] for name in constants if name.startswith("EXIT_")]
    meanings = re.search(r"Exit status (0: .*)", in_line(command_line.__doc__))
    assert meanings
    parts = [
        HEAD, table(["verdict", "test", "under `CI`", "fails with", "meaning"], rows), "", EXCEPTIONS, STATUSES,
        table(["status", "meaning"], statuses), "", COMMAND, meanings[1], "",
    ]  # fmt: skip
    return "\n".join(parts)


def _effects(verdict: Verdict) -> list[str]:
    """What it does to its test, usually, under CI, and which flag makes it fail: by asking the policy."""
    judgement = Judgement(key=Key("test_x.py", "test_x", "x"), target="sm_90", kind="static", verdict=verdict)
    usual, under_ci = (effect(judgement, options) for options in (Options(), CI))
    flag = FLAGS.get(treatment_of(judgement).fails_by, "")
    return [_shown(usual), _shown(under_ci), f"`{flag}`" if flag else ""]


def _shown(effect: Effect) -> str:
    return f"**{effect.value}**" if effect is Effect.FAIL else effect.value
