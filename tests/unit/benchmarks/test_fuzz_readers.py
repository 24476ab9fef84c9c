"""The coverage-guided search: its corpus is readable, its changes reach the readers, and a crash is told as one."""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from warm_python import COLD

ROOT = Path(__file__).parents[3]
SAID = """#100000\tDONE   cov: 401 ft: 1003 corp: 90/200Kb lim: 65536 exec/s: 3000 rss: 63Mb
stat::number_of_executed_units: 100000
stat::peak_rss_mb:              63
"""


@pytest.fixture(scope="module")
def scripts() -> Iterator[None]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield
    sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture(scope="module")
def readers(scripts: None) -> ModuleType:
    return importlib.import_module("fuzz.readers")


@pytest.fixture(scope="module")
def script(scripts: None) -> ModuleType:
    return importlib.import_module("fuzz_readers")


def test_every_file_of_the_corpus_is_read_and_all_are_small(script: ModuleType, readers: ModuleType) -> None:
    files = sorted(script.CORPUS.glob("*/*"))
    for file in files:
        assert file.stat().st_size <= script.MOST_BYTES
        readers.READERS[file.parent.name].read(file.read_bytes())
    assert {file.parent.name for file in files} == readers.READERS.keys()
    assert len(files) >= 20
    assert sum(file.stat().st_size for file in files) < 300_000


@pytest.mark.parametrize("name", ["baselines", "cubins"])
def test_changed_files_are_read_or_refused(script: ModuleType, readers: ModuleType, name: str) -> None:
    chance, reader = random.Random(5), readers.READERS[name]
    contents = [file.read_bytes() for file in sorted((script.CORPUS / name).iterdir())] + [
        b"",
        b"[]",
        b"{}",
        b"\x7fELF",
    ]
    refused = 0
    for _ in range(300):
        content = chance.choice(contents)
        for _ in range(3):  # of what was changed before, too
            content = reader.change(content, chance)
            try:
                reader.read(content)
            except reader.documented:
                refused += 1
    assert 100 < refused < 900


def test_a_run_to_the_end_is_no_crash(script: ModuleType) -> None:
    assert script.told("baselines", 0, SAID, 0.1) == ("baselines", 100_000, 401, 0.1, 63, ())


@pytest.mark.parametrize(("status", "said"), [(77, "KeyError: 3\n"), (0, "nothing of libFuzzer\n"), (70, SAID)])
def test_a_run_that_ends_otherwise_is_a_crash(script: ModuleType, status: int, said: str) -> None:
    crashed = script.told("cubins", status, said, 0.0)
    assert crashed.crashes[-1] == said.splitlines()[-1]
    assert "| cubins | 100,000 | 401 | 1 |" in script.section("command", [crashed]) or crashed.executions == 0


def test_the_section_takes_the_place_of_the_older_one(script: ModuleType) -> None:
    once = script.with_section("# Page\n\nText.\n", f"{script.HEADING}\n\nold\n")
    assert script.with_section(once, f"{script.HEADING}\n\nnew\n") == f"# Page\n\nText.\n\n{script.HEADING}\n\nnew\n"


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="needs atheris: pip install --group fuzz")
@pytest.mark.parametrize("name", ["baselines", "cubins"])
def test_a_short_search_finds_nothing(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(COLD, "1")  # the package must not be imported before atheris is there
    found = script.fuzz(name, 200, 3, tmp_path)
    assert found.crashes == ()
    assert found.executions >= 200
    assert found.edges > 50


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="needs atheris: pip install --group fuzz")
def test_an_error_that_is_not_documented_is_found(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a reader whose documented errors are said to be others."""
    (tmp_path / "fuzz").mkdir()
    for source in (ROOT / "benchmarks" / "fuzz").glob("*.py"):
        (tmp_path / "fuzz" / source.name).write_bytes(source.read_bytes())
    broken = tmp_path / "fuzz" / "readers.py"
    broken.write_text(broken.read_text() + "\nREADERS['cubins'] = READERS['cubins']._replace(documented=(KeyError,))\n")
    for source in (ROOT / "benchmarks").glob("*.py"):
        (tmp_path / source.name).symlink_to(source)
    monkeypatch.setattr(script, "HERE", tmp_path)
    monkeypatch.setenv(COLD, "1")
    found = script.fuzz("cubins", 2000, 3, tmp_path)
    assert any("BadCubin" in line for line in found.crashes)
    assert list(tmp_path.glob("cubins-crash-*"))
