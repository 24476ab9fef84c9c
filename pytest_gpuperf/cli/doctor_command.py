"""``gpuperf doctor``: what this machine can measure, what is missing and what to do."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from pytest_gpuperf.doctor import examination, findings, machine
from pytest_gpuperf.model.plugin_version import __version__


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Print the findings.  Returns the exit status: 0, or 1 if not even machine code can be compared here."""
    found = examination.examine(machine.HostMachine())
    if parsed.json:
        sys.stdout.write(findings.as_json(found, __version__))
    else:
        write(findings.as_text(found, __version__))
    return 0 if findings.is_ready("static", found) else 1
