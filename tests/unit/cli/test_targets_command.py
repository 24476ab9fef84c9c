"""``gpuperf targets``: the manifest, listed and edited by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from baseline_samples import NVRTC, make_key, make_session, static_update, time_update

from pytest_gpuperf.baselines import manifest
from pytest_gpuperf.baselines.prune import prune, unused
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.command_line import main

OTHER = "nvrtc 13.2.86"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "baselines"
    BaselineStore(folder).write(static_update())
    BaselineStore(folder).write(time_update(make_session()))
    return folder


def targets(root: Path, *words: str) -> int:
    return main(["targets", *words, "--baselines", str(root)])


def listed(root: Path) -> tuple[str, ...]:
    found = manifest.read(root)
    assert found is not None
    return (*found.targets, *found.toolchains)


def test_what_is_gated_is_listed_with_its_records(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert targets(root) == 0
    assert capsys.readouterr().out == f"sm_90          1 workload\nnvidia-h200    1 workload\n{NVRTC}  1 workload\n"


def test_a_target_that_is_added_is_missed_until_it_has_records(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert targets(root, "add", "sm_120", "nvidia-a100", OTHER) == 0
    missed = "its records are missed until they are there: pytest --update-baselines=new"
    said = capsys.readouterr().out
    assert f"sm_120: {missed} --gpuperf-arch=sm_120\n" in said
    assert f"nvidia-a100: {missed}, on a machine with nvidia-a100\n" in said
    assert f"{OTHER}: updates tell from now on which of its records are behind. Where that compiler is in use: " in said
    assert listed(root) == ("sm_90", "sm_120", "nvidia-a100", "nvidia-h200", NVRTC, OTHER)
    assert manifest.gone(root) == ("sm_120", "nvidia-a100")
    assert targets(root) == 1
    assert "sm_120         0 workloads  it has no records" in capsys.readouterr().out
    assert targets(root, "remove", "sm_120", "nvidia-a100") == 0
    assert targets(root) == 0


def test_records_of_a_compiler_that_is_removed_are_pruned(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = BaselineStore(root)
    store.write(static_update(toolchain=OTHER))
    assert listed(root)[-2:] == (NVRTC, OTHER)
    assert [entry for entry in unused(store, [], modules_collected=[]) if entry.kind == "toolchain"] == []
    assert targets(root, "remove", OTHER) == 0
    assert f"{OTHER}: its records are unused now: gpuperf prune --yes removes them" in capsys.readouterr().out
    found = [entry for entry in unused(store, [], modules_collected=[]) if entry.kind == "toolchain"]
    path = root / "sm_90/example_suite/test_transpose.json"
    words = f"sm_90: records of {OTHER}, which the manifest does not declare (in {path})"
    assert [str(entry) for entry in found] == [words]
    assert prune(store, found) == found
    assert store.recorded_toolchains() == (NVRTC,)
    assert store.static("sm_90", make_key(), NVRTC).record is not None


def test_records_of_the_last_compiler_stay_and_it_is_said_how_they_go(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert targets(root, "remove", NVRTC) == 0
    assert (
        f"{NVRTC}: its records are kept, since no compiler is declared any more, and then all that have records count: "
        "declare the one in use with gpuperf targets add, and gpuperf prune --yes removes the others'\n"
    ) in capsys.readouterr().out
    store = BaselineStore(root)
    assert [one for one in unused(store, [], modules_collected=[]) if one.kind == "toolchain"] == []
    assert targets(root, "add", OTHER) == 0
    [found] = [one for one in unused(store, [], modules_collected=[]) if one.kind == "toolchain"]
    assert found.toolchain == NVRTC


def test_a_compiler_without_records_leaves_none_to_prune(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    targets(root, "add", OTHER)
    assert targets(root, "remove", OTHER) == 0
    assert f"{OTHER}: it has no records\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("add", "../x"), "'../x' is no architecture"),
        (("add", "sm_99"), "'sm_99' is no architecture that can be compiled for: sm_75, sm_80"),
        (("add", "nvrtc13"), "'nvrtc13' has the name of a compiler, and would be taken for a GPU model: a compiler is"),
        (("add", "triton-3.6.0"), "after a space: gpuperf targets add 'nvrtc 13.0.88'"),
        (("remove", "sm_80"), "'sm_80' is not in"),
        (("remove", "nvrtc 12.0"), "it lists sm_90, nvidia-h200, nvrtc 13.0.88"),
    ],
)
def test_other_names_are_refused(
    root: Path, words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listed(root)
    assert targets(root, *words) == 1
    assert problem in capsys.readouterr().err
    assert listed(root) == before


def test_a_gpu_model_without_a_folder_is_warned_of(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert targets(root, "add", "foo", "nvidia-h200", "sm_120") == 0
    said = capsys.readouterr().out
    assert said.count("WARNING") == 1
    assert (
        f"WARNING: foo is taken for a GPU model, and there is no folder {root / 'foo'}: under CI every run fails until "
        "it has records. If it is none: gpuperf targets remove foo\n"
    ) in said


def test_a_folder_without_a_manifest_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert targets(tmp_path) == 0
    assert "has no manifest.json yet" in capsys.readouterr().out
