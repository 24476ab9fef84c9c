"""The simulated GPU of the plugin's tests serves here, too."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "plugin"))
