"""What every test shares: pytester, a quiet environment, one Hypothesis profile for people and one for CI."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["pytester"]

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test means the same on a desk and under CI: it sets ``CI`` itself where ``CI`` matters."""
    for name in ("CI", "PYTEST_ADDOPTS", "PY_COLORS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
