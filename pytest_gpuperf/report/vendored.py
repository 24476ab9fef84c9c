"""The plotting library that pages embed: uPlot 1.6.32, MIT licence, as its package on npm has it."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

FOLDER = Path(__file__).parent / "templates" / "vendor"


def vendored() -> dict[str, Markup]:
    """``plot_script`` and ``plot_style``, for a template to embed as they are."""
    return {
        "plot_script": Markup((FOLDER / "uPlot.iife.min.js").read_text(encoding="utf-8")),
        "plot_style": Markup((FOLDER / "uPlot.min.css").read_text(encoding="utf-8")),
    }


def for_script(text: str) -> Markup:
    """JSON for a ``<script type="application/json">``: nothing in it ends the element, whatever names say."""
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
