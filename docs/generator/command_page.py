"""docs/reference/commands.md: the subcommands of ``gpuperf``."""

from __future__ import annotations

import argparse

from source_text import NOTE, table

from pytest_gpuperf.cli.command_line import build_parser

HEAD = f"""\
# The gpuperf command

Exit statuses are in [verdicts](verdicts.md#exit-statuses-of-gpuperf). {NOTE}
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for action in build_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            help_of = {choice.dest: choice.help or "" for choice in action._choices_actions}
            parts += [_command(name, help_of[name], parser) for name, parser in action.choices.items()]
    return "\n".join(parts)


def _command(name: str, says: str, parser: argparse.ArgumentParser) -> str:
    rows = [[f"`{_spelt(action)}`", action.help or ""] for action in parser._actions if action.dest != "help"]
    arguments = f"\n\n{table(['argument', 'meaning'], rows)}" if rows else ""
    return f"## `gpuperf {name}`\n\n{says[:1].upper()}{says[1:]}.{arguments}\n"


def _spelt(action: argparse.Action) -> str:
    value = "|".join(action.choices) if action.choices else str(action.metavar or action.dest)
    if not action.option_strings:
        return {"?": f"[{value}]", "*": f"[{value} ...]"}.get(str(action.nargs), value)
    return action.option_strings[0] if action.nargs == 0 else f"{action.option_strings[0]} {value}"
