"""Lets tests of several folders share the samples that lie here, and the simulated GPU of the plugin's tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "plugin"))
