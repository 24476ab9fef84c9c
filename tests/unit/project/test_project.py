"""The project's own files keep the promises that README and documentation make of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
PIN = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)==(?P<version>[^;\s]+)(?:; (?P<marker>.+))?$")

METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = METADATA["dependency-groups"]
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
    here = needed("pytest-gpuperf", {"static"}).union(
        *({name} | needed(name, set()) for name in installed_for("check"))
    )
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
            other = normal(name_of(requirement))
            if (extra and extra[1] not in wanted) or other in found or not installed(other):
                continue
            if other != normal(distribution):
                found.add(other)
                waiting.append((other, set()))
    return found


def installed_for(group: str) -> set[str]:
    """Distributions that a dependency group names, its included groups' too, where they are installed."""
    found: set[str] = set()
    for entry in GROUPS[group]:
        found |= installed_for(entry["include-group"]) if isinstance(entry, dict) else {normal(name_of(entry))}
    return {name for name in found if installed(name)}


def name_of(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9_.-]+", requirement)
    assert match
    return match[0]


def installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_what_only_the_repository_needs_is_no_extra_of_the_users() -> None:
    assert METADATA["project"]["optional-dependencies"].keys() & GROUPS.keys() == set()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert set(re.findall(r"--group (\w+)", makefile)) <= GROUPS.keys()


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


def test_make_has_the_targets_of_the_readme() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"demo", "test", "lint", "check", "docs"} <= set(targets)


def test_ci_runs_the_test_command_of_the_readme() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text(encoding="utf-8")
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("status", [0, 5])
def test_ci_checks_first_and_ends_as_pytest_does(tmp_path: Path, status: int) -> None:
    """The script in a checkout whose tools say what they are called with: nothing stands between CI and pytest."""
    for name in (".ci/run", "Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    for tool in ("python", "ruff", "mypy", "lint-imports", "mkdocs"):
        say = f'#!/bin/sh\necho {tool} "$@"\ncase "$*" in "-m pytest"*) exit {status};; esac\n'
        (tools / tool).write_text(say, encoding="utf-8")
        (tools / tool).chmod(0o755)
    done = subprocess.run([tmp_path / ".ci" / "run"], capture_output=True, text=True, check=False)
    said = [
        line
        for line in done.stdout.splitlines()
        if line.startswith(("python -m pytest", "ruff", "mypy", "lint", "mkdocs"))
    ]
    assert said[:4] == ["ruff format --check .", "ruff check .", "mypy", "lint-imports"]
    assert said[4] == "mkdocs build --strict"
    assert said[5:] == done.stdout.splitlines()[-1:]
    assert said[5].startswith("python -m pytest")
    assert done.returncode == status


def test_ci_ends_with_the_first_check_that_fails(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "Makefile").write_text("lint:\n\tfalse\ntest test-setup:\n\techo tested\n", encoding="utf-8")
    done = subprocess.run([tmp_path / ".ci" / "run"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "tested" not in done.stdout


def test_version_is_said_once_and_alike() -> None:
    import pytest_gpuperf

    assert metadata.version("pytest-gpuperf") == pytest_gpuperf.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {pytest_gpuperf.__version__}\n" in citation


def test_the_guide_for_contributors_says_of_each_room_what_it_is_for() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    package = ROOT / "pytest_gpuperf"
    rooms = {f"{path.parent.name}/" for path in package.glob("*/__init__.py")} | {p.name for p in package.glob("*.py")}
    assert rooms - {"__init__.py"} == set(re.findall(r"^\| `([\w./]+)` \|", text, re.MULTILINE))


def test_modules_that_the_guide_for_contributors_names_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)+\w+)(?:\.py)?`", text))
    assert len(named) > 20
    places = (ROOT, ROOT / "pytest_gpuperf")
    assert [
        name for name in named if not any((at / name).exists() or (at / f"{name}.py").exists() for at in places)
    ] == []


def test_modules_stay_small() -> None:
    modules = (ROOT / "pytest_gpuperf").rglob("*.py")
    assert [path for path in modules if len(path.read_text(encoding="utf-8").splitlines()) > 300] == []


def test_the_index_of_the_documentation_has_every_page() -> None:
    docs = ROOT / "docs"
    text = (docs / "README.md").read_text(encoding="utf-8")
    pages = {page for page in docs.rglob("*.md") if page.parent.name != "results"}
    of_an_index = {page for page in pages if page.parent != docs and (page.parent / "README.md") in pages - {page}}
    named = {str(page.relative_to(docs)) for page in pages - of_an_index} - {"README.md"}
    assert sorted(page for page in named if f"]({page})" not in text) == []
    indices = {page: (page.parent / "README.md").read_text(encoding="utf-8") for page in of_an_index}
    assert sorted(page.name for page, index in indices.items() if f"]({page.name})" not in index) == []


def test_unit_tests_lie_where_what_they_test_lies() -> None:
    """Each folder of ``tests/unit`` that holds tests is a folder of the package, or one of the repository's own."""
    units, others = ROOT / "tests" / "unit", {Path("project"), Path("benchmarks"), Path("example_suite")}
    folders = {file.parent.relative_to(units) for file in units.rglob("test_*.py")} - others
    assert [str(folder) for folder in sorted(folders) if not (ROOT / "pytest_gpuperf" / folder).is_dir()] == []
