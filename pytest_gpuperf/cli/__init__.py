"""The ``gpuperf`` command."""

from pytest_gpuperf.cli.command_line import main

__all__ = ["main"]
