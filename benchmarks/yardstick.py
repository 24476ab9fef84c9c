"""How slow this machine is at present, for limits of time that are to hold on slow and busy ones, too."""

from __future__ import annotations

import json
import time

TEXT = b"[" + b'{"a":[0,1.5,"b"]},' * 20_000 + b"0]"
USUAL_S = 0.02
"""Processor time in which the machine that the limits are meant for reads the text as JSON."""


def slowness() -> float:
    """How many times as long as usual this machine takes to read the text, the longest of five times; at least 1."""
    took = []
    for _ in range(5):
        began = time.process_time()
        json.loads(TEXT)
        took.append(time.process_time() - began)
    return max(1.0, max(took) / USUAL_S)
