"""compute-sanitizer over the example suite: what has to be seen, and what makes a run red, with a stand-in."""

from __future__ import annotations

import fnmatch
import importlib
import itertools
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]

STAND_IN = f"""#!{sys.executable}
import json, os, pathlib, sys, time
if "--version" in sys.argv:
    print("NVIDIA (R) Compute Sanitizer\\nVersion 2025.3.0.0 (build 1)")
    raise SystemExit
log = pathlib.Path(next(word for word in sys.argv if word.startswith("--log-file=")).partition("=")[2])
tool = next(word for word in sys.argv if word.startswith("--tool=")).partition("=")[2]
said = json.loads(os.environ["STAND_IN"])
said |= said["processes"].get(log.stem, {{}})
errors = said["control"] if "sanitizing.control" in sys.argv else said["errors"]
print("printed by", log.stem, flush=True)
if said["crashes"]:
    raise SystemExit("crashed")
log.write_text(said["log"])
if "sanitizing.control" not in sys.argv:
    log.with_suffix(".command").write_text("\\n".join(sys.argv))
    time.sleep(said["seconds"])
    if said["notes"]:
        pathlib.Path(os.environ["SANITIZING_LAUNCHES"]).write_text(json.dumps(said["launches"][tool]))
summary = f"RACECHECK SUMMARY: {{errors}} hazards displayed ({{errors}} errors, 0 warnings)"
if tool != "racecheck":
    summary = f"ERROR SUMMARY: {{errors}} errors"
with log.open("a") as end:
    end.write("" if errors is None else f"========= COMPUTE-SANITIZER\\n========= {{summary}}\\n")
"""


@pytest.fixture
def sanitize(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))  # type: ignore[no-untyped-call]
    return importlib.import_module("sanitize")


@pytest.fixture
def kernels(sanitize: ModuleType) -> Any:
    return importlib.import_module("sanitizing.kernels")


@pytest.fixture
def tools(sanitize: ModuleType) -> Any:
    return importlib.import_module("sanitizing.tools")


def seen(names: Any, **changes: Any) -> dict[str, Any]:
    """What a run leaves that launched kernels of these names."""
    return {
        "status": 0,
        "gpu": "NVIDIA H200",
        "driver": "580",
        "launches": dict.fromkeys(names, 2),
        "failed": {},
        **changes,
    }


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
        "crashes": False,
        "log": "",
        "notes": True,
        "processes": {},
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


# --- what makes a run red ------------------------------------------------------------------------


def test_a_clean_run_is_green_and_makes_a_page(run: Callable[..., tuple[int, Path]], sanitize: ModuleType) -> None:
    status, folder = run()
    assert status == 0
    assert sanitize.main(["page", str(folder), f"--output={folder / 'page.md'}"]) == 0
    text = (folder / "page.md").read_text(encoding="utf-8")
    assert "On NVIDIA H200, driver 580, compute-sanitizer 2025.3.0.0." in text
    assert text.count("| 0 | 0 | 1 reported |") == text.count("| clean |") == 3
    assert "| `transpose_padded` | 4224 | 2 | 2 |" in text


def given_to(command: Path) -> list[str]:
    words = command.read_text().splitlines()
    return words[words.index("sanitizing.launches") + 1 :]


def test_each_tool_runs_what_it_is_there_for(run: Callable[..., tuple[int, Path]]) -> None:
    _, folder = run("--option=--racecheck-report=all")
    whole = [test for file in folder.glob("memcheck-*.command") for test in given_to(file)]
    assert sorted(whole) == sorted(
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "example_suite").rglob("*.py")
        if re.search(r"^    def test_|^def test_", file.read_text(encoding="utf-8"), re.MULTILINE)
    )
    for tool in ("racecheck", "synccheck"):
        (only,) = folder.glob(f"{tool}-*.command")
        assert all("::" in test for test in given_to(only))
        assert "--racecheck-report=all" in only.read_text().splitlines()


def test_named_files_alone_are_run_and_have_to_be_seen(run: Callable[..., tuple[int, Path]], kernels: Any) -> None:
    files = ("test_matmul.py", "test_reduce_sum.py")
    timed, shared = (of(ROOT / "baselines", files) for of in (kernels.timed_kernels, kernels.shared_kernels))
    launches = {"memcheck": seen(timed), **dict.fromkeys(("racecheck", "synccheck"), seen(one.name for one in shared))}
    status, folder = run("--files", *files, launches=launches)
    assert status == 0
    assert {test.partition("::")[0] for file in folder.glob("*-1.command") for test in given_to(file)} <= {
        f"example_suite/{file}" for file in files
    }
    del launches["memcheck"]["launches"]["matmul_naive"]
    assert run("--files", *files, launches=launches)[0] == 1


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"errors": 3}, "reports 3 errors"),
        ({"errors": None}, "did not come to its end in synccheck-1 (* s in all): see the .log and the .out"),
        ({"notes": False}, "did not come to its end in synccheck-1"),
        ({"launches": {"synccheck": seen([], status=2)}}, "did not come to its end in synccheck-1"),
        ({"control": 0}, "reports nothing of a kernel that is wrong"),
        ({"control": None}, "reports nothing of a kernel that is wrong"),
        ({"launches": {"synccheck": seen(["transpose_padded"])}}, "did not see async_tiles, blur_linear, chase_words"),
        ({"launches": {"synccheck": seen([], gpu=None)}}, "there was no GPU"),
    ],
)
def test_whatever_is_not_clean_is_red_and_said(
    run: Callable[..., tuple[int, Path]], capsys: pytest.CaptureFixture[str], said: dict[str, Any], words: str
) -> None:
    status, _ = run("--only=synccheck", **said)
    assert status == 1
    assert fnmatch.fnmatchcase(capsys.readouterr().err, f"*{words}*")


def test_only_tests_by_the_clock_may_fail(
    run: Callable[..., tuple[int, Path]], kernels: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = {one.name for one in kernels.shared_kernels(ROOT / "baselines")}
    by_the_clock = {"example_suite/test_bank_conflicts.py::test_cycles_of_a_load": "32 turns took 900"}
    other = {"example_suite/test_matmul.py::test_product_is_right[matmul_tiled16]": "arrays differ"}
    assert run("--only=racecheck", launches={"racecheck": seen(shared, failed=by_the_clock)})[0] == 0
    assert run("--only=racecheck", launches={"racecheck": seen(shared, failed=by_the_clock | other)})[0] == 1
    assert "test_product_is_right[matmul_tiled16] failed: arrays differ" in capsys.readouterr().err


@pytest.mark.parametrize("which", ["memcheck-3", "memcheck-control"])
def test_an_internal_error_of_the_tool_is_red_and_on_the_page(
    run: Callable[..., tuple[int, Path]], sanitize: ModuleType, capsys: pytest.CaptureFixture[str], which: str
) -> None:
    line = "Internal Sanitizer Error: Unable to allocate enough memory to perform the requested operation"
    run()
    status, folder = run("--only=memcheck", processes={which: {"log": f"========= {line}\n" * 2}})
    assert status == 1
    assert f"memcheck lost track of launches, internal errors: 2, first {which}.log: {line}" in capsys.readouterr().err
    assert sanitize.main(["page", str(folder), f"--output={folder / 'page.md'}"]) == 1
    page = (folder / "page.md").read_text(encoding="utf-8")
    row = rf"\| 0 \| 2 \| 1 reported \| \d+ \| lost track of launches, internal errors: 2, first {which}.log: {line} \|"
    assert re.search(row, page)


# --- the processes of a tool ---------------------------------------------------------------------


def outcome(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "memcheck.json").read_text(encoding="utf-8"))
    return found


ALL = [f"memcheck-{number}" for number in range(1, 7)]


def test_neighbouring_files_part_and_a_file_stays_whole(tools: Any) -> None:
    assert tools.deal(["b::1", "c", "a::1", "d", "b::2"], 3) == [["a::1", "d"], ["b::1", "b::2"], ["c"]]
    assert tools.deal(["b", "a"], 6) == [["a"], ["b"]]
    assert tools.deal(["b::1", "a", "b::2"], 1) == [["b::1", "a", "b::2"]]


def test_what_the_processes_found_is_added_up(run: Callable[..., tuple[int, Path]], kernels: Any) -> None:
    names = kernels.timed_kernels(ROOT / "baselines")
    half = sorted(names)[::2]
    failed = {"example_suite/test_matmul.py::test_product_is_right": "arrays differ"}
    processes = {
        "memcheck-2": {"errors": 3},
        "memcheck-5": {"errors": 4, "launches": {"memcheck": seen(half, failed=failed)}},
    }
    status, folder = run("--only=memcheck", processes=processes)
    found = outcome(folder)
    assert status == 1
    assert (found["errors"], found["processes"], found["unfinished"]) == (7, 6, [])
    assert found["launches"] == {name: 12 if name in half else 10 for name in sorted(names)}
    assert found["failed"] == failed
    assert found["missed"] == []


@pytest.mark.parametrize("death", [{"errors": None, "notes": False}, {"notes": False}, {"errors": None}])
def test_a_process_that_dies_is_named_and_the_others_go_on(
    run: Callable[..., tuple[int, Path]], capsys: pytest.CaptureFixture[str], death: dict[str, Any]
) -> None:
    assert run("--only=memcheck")[0] == 0  # what that one left is not taken for the second run's
    status, folder = run("--only=memcheck", processes={"memcheck-4": death})
    assert status == 1
    assert "memcheck did not come to its end in memcheck-4 (" in capsys.readouterr().err
    assert outcome(folder)["unfinished"] == ["memcheck-4"]
    assert outcome(folder)["errors"] is None
    assert outcome(folder)["launches"]


def test_the_limit_is_of_the_tool_and_not_of_each_process(
    run: Callable[..., tuple[int, Path]], tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 100 s the first process takes 99, by a clock of this test's own; the second would take 20."""
    moments = itertools.chain([0.0, 0.0, 99.0], itertools.repeat(100.0))
    monkeypatch.setattr(tools, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    status, folder = run("--only=memcheck", "--limit=100", processes={"memcheck-2": {"seconds": 20}})
    assert status == 1
    assert outcome(folder)["unfinished"] == ALL[1:]
    assert [name for name in ALL if (folder / f"{name}.out").exists()] == ALL[:2]  # no time to start the last four


def test_tests_by_the_clock_exist(tools: Any) -> None:
    for node in tools.BY_THE_CLOCK:
        path, _, test = node.partition("::")
        assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8")


def test_without_the_program_it_says_so(
    sanitize: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sanitize.main(["run", f"--to={tmp_path}", "--sanitizer=/nowhere/compute-sanitizer"]) == 1
    assert "there is no /nowhere/compute-sanitizer" in capsys.readouterr().err
