"""The environment of a process that uses the GPU beside this one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.options import Options


@pytest.mark.parametrize(("options", "found"), [(Options(ci=True), "true"), (Options(), None)])
def test_a_child_of_a_ci_run_is_one_of_ci_whatever_a_conftest_did(
    options: Options, found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    of_worker: Any = SimpleNamespace(
        options=options, number=None, device=SimpleNamespace(facts=SimpleNamespace(uuid="GPU-1"))
    )
    assert Worker.child_environment(of_worker).get("CI") == found
