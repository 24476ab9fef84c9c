"""docs/reference/options.md: flags with their ini settings, keywords of the marker, and hooks."""

from __future__ import annotations

import argparse
import dataclasses
import inspect

from source_text import NOTE, attribute_docs, in_line, table

from pytest_gpuperf import hookspecs
from pytest_gpuperf.api import marker
from pytest_gpuperf.arguments import setting_problem
from pytest_gpuperf.options import FLAGS, SWITCH, Flag, Options

HEAD = f"""\
# Options

{NOTE}

- [Flags and ini settings](#flags-and-ini-settings)
- [The marker](#the-marker)
- [Hooks](#hooks)

## Flags and ini settings

Ini settings go under `[tool.pytest.ini_options]` or `[pytest]`. A flag wins over its ini setting. Flags that concern a
single run have no ini setting. Flags that say how to measure or gate are refused in a run that measures nothing: one
without `--gpuperf`, `--update-baselines` or `--gpuperf-ncu`. Every value is checked when pytest starts.

In pytest 9's own table `[tool.pytest]` switches are `true` or `false`, numbers are numbers, all else is text. A path on
the command line is relative to the current folder, one in an ini file to pytest's root.
"""
MARKER = """\
## The marker

`@pytest.mark.gpuperf(tolerance="loose", cache="warm")` on a function or class, or `pytestmark` in a module, sets what
holds for these tests. The most specific setting wins: an argument of `gpuperf(...)`, then the marker of the function,
the class and the module, then the flag, then the ini setting. An unknown keyword or a bad value is a usage error when
tests are collected.
"""
HOOKS = """\
## Hooks

A `conftest.py` or another plugin may implement these.
"""
DEFAULTS = {
    one.name: "off" if one.default is False else f"`{one.default}`" if isinstance(one.default, str | float) else ""
    for one in dataclasses.fields(Options)
} | {"open": "", "against": ""}
"""Of fields of the options, as they are shown; `--gpuperf-open` has two."""
NO_VALUE = "\0"
"""What no keyword accepts."""


def page() -> str:
    """The whole page."""
    flags = table(["flag", "ini setting", "meaning", "accepts", "default"],
                  [_flag(field, flag) for field, flag in FLAGS.items() if flag.help != argparse.SUPPRESS])  # fmt: skip
    return "\n".join([HEAD, flags, "", MARKER, _marker(), "", HOOKS, *_hooks(), ""])


def _flag(field: str, flag: Flag) -> list[str]:
    name = f"{flag.name}[={flag.metavar}]" if flag.bare else flag.name
    return [
        f"`{name}`", f"`{flag.ini_name}`" if flag.ini else "", flag.help.replace("%%", "%").replace("<", "&lt;"),
        "a switch" if flag.kind is SWITCH else flag.kind.accepts, DEFAULTS[field],
    ]  # fmt: skip


def _marker() -> str:
    words = attribute_docs(marker.MarkerSettings)
    rows = [[f"`{name}`", words[name], _keyword_accepts(name)] for name in marker.MarkerSettings.__annotations__]
    return table(["keyword", "meaning", "accepts"], rows)


def _keyword_accepts(name: str) -> str:
    return (setting_problem(name, NO_VALUE) or "").partition("it takes ")[2]


def _hooks() -> list[str]:
    hooks = inspect.getmembers(hookspecs, inspect.isfunction)
    return [
        f"- `{name}({', '.join(inspect.signature(hook).parameters)})`: {in_line(hook.__doc__)}"
        for name, hook in hooks
        if name.startswith("pytest_")
    ]
