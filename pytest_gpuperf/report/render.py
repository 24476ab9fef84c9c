"""What all pages share: how they are rendered (Jinja2), and what their scripts need.

That is the data and uPlot 1.6.32, MIT licence, as it was released.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from pytest_gpuperf.formatting import visible

FOLDER = Path(__file__).parent / "templates" / "vendor"


def rendered(template: str, **values: Any) -> str:
    """The page of a template: text is escaped, and its characters that are not printed are written out."""
    environment = jinja2.Environment(
        finalize=lambda value: visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value,
        loader=jinja2.PackageLoader("pytest_gpuperf.report"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template(template).render(**values)


def vendored() -> dict[str, Markup]:
    """``plot_script`` and ``plot_style``, for a template to embed as they are."""
    return {
        "plot_script": Markup((FOLDER / "uPlot.iife.min.js").read_text(encoding="utf-8")),
        "plot_style": Markup((FOLDER / "uPlot.min.css").read_text(encoding="utf-8")),
    }


def for_script(data: object) -> Markup:
    """JSON for a ``<script type="application/json">``: nothing in it ends the element, whatever names say."""
    text = msgspec.json.encode(data).decode()
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
