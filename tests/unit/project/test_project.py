"""The project's own files keep the promises that README and documentation make of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PIN = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)==(?P<version>[^;\s]+)(?:; (?P<marker>.+))?$")

HEAVY = ("numpy", "scipy", "cupy", "cuda", "pynvml", "cupti")


def pins() -> list[re.Match[str]]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    matches = [PIN.match(line) for line in lines if line and not line.startswith("#")]
    assert all(matches), "every line of constraints.txt pins one exact version"
    return [match for match in matches if match]


def test_the_compiler_of_the_committed_baselines_is_pinned() -> None:
    versions = {pin["name"]: pin["version"] for pin in pins()}
    assert versions["nvidia-cuda-nvrtc"] == "13.0.88"
    assert versions["nvidia-cuda-nvdisasm"] == "13.5.37"


def test_everything_that_the_repository_installs_is_pinned() -> None:
    pinned = {normal(pin["name"]) for pin in pins()}
    here = needed("pytest-gpuperf", {"static", "test", "check"})
    allowed = {(normal(pin["name"]), pin["version"]) for pin in pins()}
    others = [name for name in sorted(here & pinned) if (name, metadata.version(name)) not in allowed]
    if others:  # what these depend on is not what the pinned ones do
        pytest.skip(f"not installed with -c constraints.txt: {', '.join(others)}")
    assert not here - pinned, f"add to constraints.txt: {sorted(here - pinned)}"


def needed(distribution: str, extras: set[str]) -> set[str]:
    """Names of all distributions that installing this one with these extras brings in here."""
    found: set[str] = set()
    waiting = [(distribution, extras)]
    while waiting:
        name, wanted = waiting.pop()
        for requirement in metadata.requires(name) or []:
            extra = re.search(r"extra == ['\"]([^'\"]+)", requirement)
            match = re.match(r"[A-Za-z0-9_.-]+", requirement)
            assert match
            other = normal(match[0])
            if (extra and extra[1] not in wanted) or other in found or not installed(other):
                continue
            if other != normal(distribution):
                found.add(other)
                waiting.append((other, set()))
    return found


def installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_entry_points_name_the_plugin_and_the_command() -> None:
    points = {(point.group, point.name): point.value for point in metadata.distribution("pytest-gpuperf").entry_points}
    assert points["pytest11", "gpuperf"] == "pytest_gpuperf.plugin"
    assert points["console_scripts", "gpuperf"] == "pytest_gpuperf.cli:main"


def test_the_package_is_typed() -> None:
    assert (ROOT / "pytest_gpuperf" / "py.typed").is_file()


def test_the_plugin_imports_nothing_heavy() -> None:
    """A plain ``pytest`` run of a project that merely has the plugin installed must not pay for it."""
    code = (
        "import json, sys; import pytest_gpuperf.plugin; "
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize("target", ["demo", "test", "check"])
def test_make_has_the_target(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_ci_runs_the_test_command_of_the_readme() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text(encoding="utf-8")
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_version_is_said_once_and_alike() -> None:
    import pytest_gpuperf

    assert metadata.version("pytest-gpuperf") == pytest_gpuperf.__version__


@pytest.mark.parametrize("path", sorted((ROOT / "pytest_gpuperf").rglob("*.py")), ids=lambda path: path.stem)
def test_modules_stay_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300


def test_every_flag_is_in_the_options_table_with_its_ini_name() -> None:
    from pytest_gpuperf.config.flags import FLAGS

    text = (ROOT / "docs" / "writing-tests.md").read_text(encoding="utf-8")
    for flag in FLAGS:
        if not flag.hidden:
            row = rf"^\| `{flag.name}(\[=(MODE|SET)\])?` \| {f'`{flag.ini_name}`' if flag.ini else ''} ?\|"
            assert re.search(row, text, re.MULTILINE), f"docs/writing-tests.md lacks {flag.name}"


def test_every_verdict_and_marker_keyword_is_documented() -> None:
    from pytest_gpuperf.context.marker import MarkerSettings
    from pytest_gpuperf.model.verdict import Verdict

    text = (ROOT / "docs" / "writing-tests.md").read_text(encoding="utf-8")
    assert [verdict.value for verdict in Verdict if verdict.value not in text] == []
    keywords = MarkerSettings.__annotations__
    assert [keyword for keyword in keywords if f"| `{keyword}` |" not in text] == []


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{p.name}" for p in sorted((ROOT / "docs").glob("*.md")))])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text)
    assert [
        link for link, _ in links if link and not link.startswith("http") and not ((ROOT / page).parent / link).exists()
    ] == []
    headings = {re.sub(r"[^\w\- ]", "", line.lstrip("# ")).lower().replace(" ", "-")
                for line in text.splitlines() if line.startswith("#")}  # fmt: skip
    assert [anchor for link, anchor in links if not link and anchor and anchor not in headings] == []


def test_unit_tests_lie_where_what_they_test_lies() -> None:
    """Each folder of ``tests/unit`` that holds tests is a folder of the package, or one of the repository's own."""
    units, others = ROOT / "tests" / "unit", {Path("project"), Path("benchmarks"), Path("example_suite")}
    folders = {file.parent.relative_to(units) for file in units.rglob("test_*.py")} - others
    assert [str(folder) for folder in sorted(folders) if not (ROOT / "pytest_gpuperf" / folder).is_dir()] == []
