"""Which verdicts an update takes, by its mode.  What passed never moves a record, unless it is asked for by name.

A record that followed every SAME would drift with it: a fraction of the tolerance per update, and never red.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.options import Options, UpdateMode

TAKEN: Mapping[UpdateMode, frozenset[Verdict]] = MappingProxyType({
    "new": frozenset({Verdict.NEW}),
    "changed": frozenset({
        Verdict.NEW, Verdict.SLOWER, Verdict.FASTER, Verdict.WORSE, Verdict.BETTER,
        Verdict.NOT_COMPARABLE,
    }),
    "all": frozenset(Verdict) - {Verdict.NOT_MEASURED},
})  # fmt: skip
"""Verdicts against the record, on evidence of any kind."""


def takes(judgement: Judgement, options: Options) -> bool:
    """Whether this update records the evidence that was judged so."""
    if options.update is None or judgement.verdict is Verdict.NOT_MEASURED:
        return False
    return judgement.verdict in TAKEN[options.update] or by_name(judgement.key.node_id, options)


def by_name(node_id: str, options: Options) -> bool:
    """Whether this update was asked for this very test: its node id is an argument, with its parameters or without.

    ``new`` takes nothing by name: it adds, and moves nothing that is there.
    """
    if options.update in (None, "new"):
        return False
    return any(node_id == name or node_id.startswith(f"{name}[") for name in options.named)
