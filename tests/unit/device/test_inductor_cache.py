"""Kernels that ``torch.compile`` left in a cache folder: each by its name, the one that was chosen, or a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
from handed_samples import NARROW, SOFTMAX, WIDE, chosen, compiled_to, program

from pytest_gpuperf.compile.adapters.torch import read_inductor
from pytest_gpuperf.compile.compile_errors import UnsupportedKernel


def test_kernels_of_one_configuration_are_found_by_name(tmp_path: Path) -> None:
    compiled_to(tmp_path, WIDE)
    compiled_to(tmp_path, SOFTMAX)
    program(tmp_path, "add", "softmax")
    found = [(one.symbol, one.threads, one.shared_bytes, one.config) for one in read_inductor(tmp_path)]
    assert found == [("add", 128, 0, ""), ("softmax", 128, 16, "")]


@pytest.mark.parametrize(("stem", "threads"), [(WIDE, 128), (NARROW, 64)])
def test_of_several_configurations_it_is_the_chosen_one(tmp_path: Path, stem: str, threads: int) -> None:
    places = {one: compiled_to(tmp_path, one) for one in (WIDE, NARROW)}
    chosen(tmp_path, places[stem], XBLOCK=8 * threads, num_warps=threads // 32)
    program(tmp_path, "add")
    (kernel,) = read_inductor(tmp_path)
    config = f"XBLOCK={8 * threads}, num_warps={threads // 32}, num_stages=1"
    assert (kernel.threads, kernel.config, kernel.compiler) == (threads, config, "triton 3.6.0")


def refused(folder: Path, *kernels: str) -> str:
    program(folder, *(kernels or ("add",)))
    with pytest.raises(UnsupportedKernel, match=r"Its time is gated all the same: gpuperf\(lambda: f.*\)$") as caught:
        read_inductor(folder)
    return str(caught.value)


def test_a_choice_that_is_not_told_is_refused(tmp_path: Path) -> None:
    place = compiled_to(tmp_path, WIDE)
    chosen(tmp_path, place)
    (tmp_path / "ab" / "cab0.best_config").write_bytes(b"\x80pickled")  # of one it is not needed
    program(tmp_path, "add")
    assert [one.config for one in read_inductor(tmp_path)] == [""]
    narrow = compiled_to(tmp_path, NARROW)
    not_known = "add was compiled 2 times, for 1 graph, so the launched one is not known"
    assert not_known in refused(tmp_path)
    for other in (None, "ANOTHER"):
        chosen(tmp_path, other)
        assert not_known in refused(tmp_path)
    chosen(tmp_path, narrow)
    program(tmp_path, "softmax", "add", number=1)
    assert "add was compiled 2 times, for 2 graphs, so the launched one is" in refused(tmp_path)


@pytest.mark.parametrize("text", ["{}", "no JSON", '{"name": "add", "num_warps": "four"}'])
def test_another_layout_is_refused(tmp_path: Path, text: str) -> None:
    place = compiled_to(tmp_path, WIDE)
    (tmp_path / "triton" / place / "add.json").write_text(text)
    assert "from_torch: add: its files are not those of Triton 3.0 to 3.9: " in refused(tmp_path)
