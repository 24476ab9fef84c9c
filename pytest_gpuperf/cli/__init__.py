"""The ``gpuperf`` command: its sub-commands, and what they print."""

from pytest_gpuperf.cli.command_line import main

__all__ = ["main"]
