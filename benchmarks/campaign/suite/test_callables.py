"""Callables that ``paired_campaign.py callables`` gates in a repository made of this folder."""

import pytest
from work import NAMES, made

MORE = {}
"""Percent of more work, by the callable's name."""
AGAIN = 1


@pytest.mark.parametrize("again", range(AGAIN))
@pytest.mark.parametrize("library", NAMES)
def test_callables(gpu, gpuperf, library, again):
    pytest.importorskip(library)
    for name in NAMES[library]:
        call, reset = made(name, MORE.get(name, 0))
        gpuperf(call, name=name, reset=reset)
