"""The base of all errors whose message is for a user."""

from __future__ import annotations


class GpuperfError(Exception):
    """What happened, and what to do.  The command and the plugin show the message, and no traceback."""
