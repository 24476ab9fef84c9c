"""The project's own files and exports keep the promises that README and documentation make of them."""

from __future__ import annotations

import ast
import hashlib
import importlib
import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from documented_commands import METADATA, ROOT

import pytest_gpuperf

GROUPS = METADATA["dependency-groups"]


def names_of(requirements: Iterable[object]) -> set[str]:
    return {
        re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", one)[0]).lower() for one in requirements if isinstance(one, str)
    }


def test_what_the_repository_installs_is_pinned_and_its_own_needs_are_no_extras() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if line and not line.startswith("#")]
    assert all(re.match(r"[\w.-]+==[^;\s]+(; .+)?$", line) for line in pinned), "each line pins one exact version"
    assert {"nvidia-cuda-nvrtc==13.0.88", "nvidia-cuda-nvdisasm==13.5.37"} <= set(pinned), "as the baselines have it"
    project = METADATA["project"]
    extras = project["optional-dependencies"]
    wanted = names_of([*project["dependencies"], *extras["static"], *GROUPS["test"], *GROUPS["check"]])
    assert wanted - names_of(pinned) == set()
    assert extras.keys() & GROUPS.keys() == set()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert set(re.findall(r"--group (\w+)", makefile)) <= GROUPS.keys()


@pytest.mark.parametrize(
    ("ends", "status"), [('"-m pytest"*) exit 0', 0), ('"-m pytest"*) exit 5', 5), ("check*) exit 1", 2)]
)
def test_ci_checks_first_and_ends_as_pytest_does(tmp_path: Path, ends: str, status: int) -> None:
    """The script in a checkout whose tools say what they are called with: nothing stands between CI and pytest."""
    for name in (".ci/run", "Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    for tool in ("python", "ruff", "mypy", "lint-imports", "mkdocs"):
        (tools / tool).write_text(f'#!/bin/sh\necho {tool} "$@"\ncase "$*" in {ends};; esac\n', encoding="utf-8")
        (tools / tool).chmod(0o755)
    done = subprocess.run([tmp_path / ".ci" / "run"], capture_output=True, text=True, check=False)
    assert done.returncode == status
    lines = done.stdout.splitlines()
    said = [line for line in lines if line.startswith(("python -m pytest", "ruff", "mypy", "lint", "mkdocs"))]
    checks = ["ruff format --check .", "ruff check .", "mypy", "lint-imports", "mkdocs build --strict"]
    if status == 2:  # of make: a check that fails ends it
        assert [line for line in said if line.startswith(("ruff", "mypy", "python"))] == checks[:2]
    else:
        assert sorted(said[:-1]) == sorted(checks)
        assert lines[-1].startswith("python -m pytest")


@pytest.mark.parametrize(("tag", "status"), [(f"v{pytest_gpuperf.__version__}", 0), ("v99", 1)])
def test_release_refuses_a_tag_that_is_not_the_version(tag: str, status: int) -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]
    runs = [step["run"] for step in jobs["build"]["steps"] if "run" in step]
    assert [runs[1], *(job.get("environment") for job in jobs.values())] == ["make dist", None, "release"]
    where = {"GITHUB_REF_NAME": tag, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-e", "-c", runs[0]], cwd=ROOT, env=where, capture_output=True, text=True)
    assert (done.returncode, done.stdout.startswith("::error::the tag is v99, and")) == (status, bool(status))


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
    assert [one for one in named if not any((at / one).exists() or (at / f"{one}.py").exists() for at in places)] == []


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


WHEEL = METADATA["tool"]["hatch"]["build"]["targets"]["wheel"]
LEFT_OUT = [one.lstrip("/") for one in WHEEL["exclude"]]
IMPORT = re.compile(r"^[ \t]*(?:from|import) (\w+)", re.MULTILINE)
MOST_BYTES = 1_475_000
"""Of 1.5 MB, the licence and the metadata being 15 KB more."""


def contents() -> list[str]:
    """Tracked files of the wheel, as the repository calls them."""
    listed = subprocess.run(["git", "ls-files", *WHEEL["only-include"]], cwd=ROOT, capture_output=True, text=True)
    left_out = tuple(f"{one}/" for one in LEFT_OUT)
    return [name for name in listed.stdout.splitlines() if not f"{name}/".startswith(left_out)]


def test_the_wheel_stays_below_its_limit() -> None:
    packed, record = io.BytesIO(), []
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in contents():
            source, _, rest = name.partition("/")
            place = f"{WHEEL['sources'].get(source, source)}/{rest}"
            content = (ROOT / name).read_bytes()
            wheel.writestr(place, content)
            record.append(f"{place},sha256={hashlib.sha256(content).hexdigest()[:43]},{len(content)}\n")
        wheel.writestr("RECORD", "".join(record))
    assert len(record) > 450
    assert len(packed.getvalue()) < MOST_BYTES


def test_no_example_imports_what_is_left_out() -> None:
    modules = {name for name in contents() if name.startswith("example_suite/") and name.endswith(".py")}
    imported = {one for name in modules for one in IMPORT.findall((ROOT / name).read_text(encoding="utf-8"))}
    assert len(modules) > 50
    assert [one for one in LEFT_OUT if not (ROOT / one).exists()] == []
    assert {f"example_suite/{one}.py" for one in imported}.isdisjoint(LEFT_OUT)


WRITTEN_BY_A_USER = ROOT / "tests" / "typing" / "written_by_a_user.py"


def imports(nodes: list[ast.stmt]) -> dict[str, set[str]]:
    """Names by the module that statements import them from."""
    found: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            found.setdefault(node.module or "", set()).update(alias.name for alias in node.names)
    return found


def test_every_export_is_in_the_file_that_mypy_reads_as_a_user_would() -> None:
    tree = ast.parse(WRITTEN_BY_A_USER.read_text(encoding="utf-8"))
    imported = imports(tree.body)["pytest_gpuperf"]
    assert imported == set(pytest_gpuperf.__all__)
    used = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    assert sorted(imported - set(used)) == []


def test_exports_come_from_the_homes_that_the_package_names() -> None:
    for name in set(pytest_gpuperf.__all__) - {"__version__"}:
        home = importlib.import_module(pytest_gpuperf._HOME_OF[name])  # type: ignore[attr-defined]
        assert getattr(pytest_gpuperf, name) is getattr(home, name)
        assert getattr(pytest_gpuperf, name).__module__ in (home.__name__, "builtins")  # so that messages have no path


def test_import_of_the_package_loads_its_version_alone() -> None:
    code = "import sys, pytest_gpuperf; print(*sorted(one for one in sys.modules if one.startswith('pytest_gpuperf')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["pytest_gpuperf", "pytest_gpuperf.model"]


def test_a_name_that_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchName'"):
        _ = pytest_gpuperf.NoSuchName  # type: ignore[attr-defined]
    assert set(pytest_gpuperf.__all__) <= set(dir(pytest_gpuperf))
