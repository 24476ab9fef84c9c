"""Groups of pytest-xdist (``--dist loadgroup``), which its workers append to node ids: ``test_x.py::test_a@group``.

Only the controller needs them there, to hand tests out.  Baselines, reports and child processes know tests without.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def group_of(item: pytest.Item) -> str:
    """The group of a test, with its ``@``; empty without."""
    marks = list(item.iter_markers("xdist_group"))
    names = {str(mark.args[0] if mark.args else mark.kwargs.get("name", "default")) for mark in marks}
    return "@" + "_".join(sorted(names)) if names else ""


def plain_id(item: pytest.Item) -> str:
    """The node id of a test without its group."""
    return item.nodeid.removesuffix(group_of(item))


def take_off(items: Iterable[pytest.Item]) -> None:
    """Give tests of a worker that has told its controller what it collected their plain node ids back."""
    for item in items:
        plain = plain_id(item)
        if plain != item.nodeid:
            item._nodeid = plain  # type: ignore[attr-defined] # as pytest-xdist sets it, beside pytest before 9.2


def without_group(config: pytest.Config, node_id: str) -> str:
    """The plain node id of what a worker told its controller, whose configuration this is."""
    at = node_id.rfind("@")
    grouped = config.getoption("dist", "no") == "loadgroup" and at > max(node_id.rfind("]"), node_id.rfind("::"))
    return node_id[:at] if grouped else node_id
