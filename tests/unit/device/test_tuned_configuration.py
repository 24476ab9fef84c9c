"""What an autotuner chose, as it goes on record: real ``triton.Config``s of several Tritons, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from triton_samples import Config, compiled

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.compile.adapters.triton import read_triton

NARROW = "add-narrow-3.6.0"


def config_of(compiled_one: Any, config: Any) -> str:
    return read_triton(compiled_one, config).config


@pytest.mark.parametrize("version", ["3.3.1", "3.6.0", "3.7.1", "3.8.0", "3.9.0"])
def test_each_triton_s_configuration_is_told_alike(version: str) -> None:
    stem = f"add-narrow-{version}"
    assert config_of(compiled(stem), Config(stem)) == "BLOCK=256, num_warps=2, num_stages=2"


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"maxnreg": 64}, "BLOCK=256, num_warps=2, num_stages=2, maxnreg=64"),
        ({"maxnreg": None}, "BLOCK=256, num_warps=2, num_stages=2"),
        ({"num_consumer_groups": 0}, "BLOCK=256, num_warps=2, num_stages=2"),
        ({"num_consumer_groups": 2}, "BLOCK=256, num_consumer_groups=2, num_warps=2, num_stages=2"),
    ],
)
def test_options_are_told_where_they_do_something(metadata: dict[str, Any], told: str) -> None:
    found = config_of(compiled(NARROW, **metadata), Config(NARROW, **metadata))
    assert found == told


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"BLOCK": 1024}, "config has BLOCK=1024, and add was compiled with 256: the autotuner keeps the best_config"),
        ({"num_warps": 4}, "config has num_warps=4, and add was compiled with 2: "),
        ({"num_stages": 3}, "config has num_stages=3, and add was compiled with 2: "),
        ({"maxnreg": 64}, "config has maxnreg=64, and add was compiled with None: "),
        ({"SPLIT": 2}, "config has SPLIT=2, and add was compiled with None: "),
    ],
)
def test_the_configuration_of_another_call_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArgument) as caught:
        read_triton(compiled(NARROW), Config(NARROW, **changes))
    assert str(caught.value).startswith(f"from_triton: {words}")


@pytest.mark.parametrize("what", ["BLOCK=256", 5, {}, SimpleNamespace(best_config=1), SimpleNamespace(all_kwargs=dict)])
def test_what_is_no_configuration_is_refused(what: Any) -> None:
    with pytest.raises(BadArgument, match=r"config is a \w+; it takes kernel\.best_config, which an autotuned kernel"):
        read_triton(compiled(NARROW), what)
