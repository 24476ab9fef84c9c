"""compute-sanitizer over the example suite: what has to be seen, and what makes a run red, with a stand-in."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

STAND_IN = f"""#!{sys.executable}
import json, os, pathlib, sys, time
if "--version" in sys.argv:
    print("NVIDIA (R) Compute Sanitizer\\nVersion 2025.3.0.0 (build 1)")
    raise SystemExit
said = json.loads(os.environ["STAND_IN"])
log = next(word for word in sys.argv if word.startswith("--log-file=")).partition("=")[2]
tool = next(word for word in sys.argv if word.startswith("--tool=")).partition("=")[2]
if "sanitizing.control" in sys.argv:
    errors = said["control"]
else:
    errors = said["errors"]
    pathlib.Path(os.environ["SANITIZING_LAUNCHES"]).write_text(json.dumps(said["launches"][tool]))
    pathlib.Path(log).with_suffix(".command").write_text("\\n".join(sys.argv))
    time.sleep(said["seconds"])
summary = f"RACECHECK SUMMARY: {{errors}} hazards displayed ({{errors}} errors, 0 warnings)"
if tool != "racecheck":
    summary = f"ERROR SUMMARY: {{errors}} errors"
pathlib.Path(log).write_text("" if errors is None else f"========= COMPUTE-SANITIZER\\n========= {{summary}}\\n")
"""


@pytest.fixture
def sanitize(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))  # type: ignore[no-untyped-call]
    return importlib.import_module("sanitize")


@pytest.fixture
def kernels(sanitize: ModuleType) -> Any:
    return importlib.import_module("sanitizing.kernels")


def seen(names: Any, **changes: Any) -> dict[str, Any]:
    """What a run leaves that launched kernels of these names."""
    return {"gpu": "NVIDIA H200", "driver": "580", "launches": dict.fromkeys(names, 2), "failed": {}, **changes}


@pytest.fixture
def run(
    sanitize: ModuleType, kernels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, Path]]:
    """Runs the stand-in, which says what it is told to; status and folder."""
    stand_in = tmp_path / "compute-sanitizer"
    stand_in.write_text(STAND_IN, encoding="utf-8")
    stand_in.chmod(0o755)
    shared = {one.name for one in kernels.shared_kernels(ROOT / "baselines")}
    clean = {
        "control": 1,
        "errors": 0,
        "seconds": 0,
        "launches": {
            "memcheck": seen(kernels.timed_kernels(ROOT / "baselines")),
            **dict.fromkeys(("racecheck", "synccheck"), seen(shared)),
        },
    }

    def with_answers(*arguments: str, **said: Any) -> tuple[int, Path]:
        monkeypatch.setenv("STAND_IN", json.dumps({**clean, **said}))
        folder = tmp_path / "found"
        return sanitize.main(["run", f"--to={folder}", f"--sanitizer={stand_in}", *arguments]), folder

    return with_answers


# --- what has to be seen -------------------------------------------------------------------------


def test_kernels_with_shared_memory_are_those_of_the_baselines(kernels: Any) -> None:
    found = {one.name: one for one in kernels.shared_kernels(ROOT / "baselines")}
    assert found["transpose_padded"].shared_bytes == 4224
    assert found["reverse_tiles"].shared_bytes == 98 * 1024  # dynamic
    assert "transpose_naive" not in found
    assert not found.keys() & kernels.NEVER_LAUNCHED.keys()


def test_the_small_tests_of_a_kernel_are_taken(kernels: Any) -> None:
    found = {one.name: one.tests for one in kernels.shared_kernels(ROOT / "baselines")}
    assert found["transpose_padded"] == ("example_suite/test_transpose32.py::test_every_element_lands_where_it_should",)
    assert all("test_product_is_right" in test for test in found["matmul_tiled32"])


# --- what makes a run red ------------------------------------------------------------------------


def test_a_clean_run_is_green_and_makes_a_page(run: Callable[..., tuple[int, Path]], sanitize: ModuleType) -> None:
    status, folder = run()
    assert status == 0
    assert sanitize.main(["page", str(folder), f"--output={folder / 'page.md'}"]) == 0
    text = (folder / "page.md").read_text(encoding="utf-8")
    assert "On NVIDIA H200, driver 580, compute-sanitizer 2025.3.0.0." in text
    assert text.count("| 0 | 1 reported | 0 | clean |") == 3
    assert "| `transpose_padded` | 4224 | 2 | 2 |" in text


def test_each_tool_runs_what_it_is_there_for(run: Callable[..., tuple[int, Path]]) -> None:
    _, folder = run("--option=--racecheck-report=all")
    whole, small = ((folder / f"{tool}.command").read_text().splitlines() for tool in ("memcheck", "racecheck"))
    assert whole[-1] == "example_suite"
    assert all("::" in test for test in small[small.index("sanitizing.launches") + 1 :])
    assert "--racecheck-report=all" in small


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"errors": 3}, "reports 3 errors"),
        ({"errors": None}, "did not come to its summary"),
        ({"control": 0}, "reports nothing of a kernel that is wrong"),
        ({"control": None}, "reports nothing of a kernel that is wrong"),
        ({"launches": {"synccheck": seen(["transpose_padded"])}}, "did not see async_tiles, chase_words"),
        ({"launches": {"synccheck": seen([], gpu=None)}}, "there was no GPU"),
    ],
)
def test_whatever_is_not_clean_is_red_and_said(
    run: Callable[..., tuple[int, Path]], capsys: pytest.CaptureFixture[str], said: dict[str, Any], words: str
) -> None:
    status, _ = run("--only=synccheck", **said)
    assert status == 1
    assert words in capsys.readouterr().err


def test_a_tool_that_takes_too_long_is_ended(
    run: Callable[..., tuple[int, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    status, _ = run("--only=memcheck", "--limit=2", seconds=60)
    assert status == 1
    assert "did not come to its summary within 2 s" in capsys.readouterr().err


def test_only_tests_by_the_clock_may_fail(
    run: Callable[..., tuple[int, Path]], kernels: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = {one.name for one in kernels.shared_kernels(ROOT / "baselines")}
    by_the_clock = {"example_suite/test_bank_conflicts.py::test_cycles_of_a_load": "32 turns took 900"}
    other = {"example_suite/test_matmul.py::test_product_is_right[matmul_tiled16]": "arrays differ"}
    assert run("--only=racecheck", launches={"racecheck": seen(shared, failed=by_the_clock)})[0] == 0
    assert run("--only=racecheck", launches={"racecheck": seen(shared, failed=by_the_clock | other)})[0] == 1
    assert "test_product_is_right[matmul_tiled16] failed: arrays differ" in capsys.readouterr().err


def test_tests_by_the_clock_exist(sanitize: ModuleType) -> None:
    for node in importlib.import_module("sanitizing.tools").BY_THE_CLOCK:
        path, _, test = node.partition("::")
        assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8")


def test_a_page_needs_all_tools(
    run: Callable[..., tuple[int, Path]], sanitize: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    _, folder = run("--only=racecheck")
    assert sanitize.main(["page", str(folder), f"--output={folder / 'page.md'}"]) == 1
    assert "no memcheck.json, synccheck.json: run them first" in capsys.readouterr().err


def test_without_the_program_it_says_so(
    sanitize: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sanitize.main(["run", f"--to={tmp_path}", "--sanitizer=/nowhere/compute-sanitizer"]) == 1
    assert "there is no /nowhere/compute-sanitizer" in capsys.readouterr().err
