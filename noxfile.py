"""The plugin beside the versions of Python and pytest that it supports, and beside other plugins: ``make matrix``.

    nox --list
    nox -s versions-3.12 -s beside

A Python that is not installed is skipped.  Tests that need more of pytest than its public interface are for ``make
test``; what runs here is ``TESTS``.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import nox

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
NEWEST = "pytest"
PYTESTS = ("pytest==8.0.*", "pytest==8.4.*", NEWEST, "pytest @ git+https://github.com/pytest-dev/pytest")
"""The oldest, the last of the eighth, the newest, and the main branch."""
TESTS = (
    "tests/plugin/test_static_gate.py", "tests/plugin/test_time_gate.py", "tests/plugin/test_update.py",
    "tests/plugin/test_second_process.py", "tests/plugin/test_static_only.py", "tests/plugin/test_honest_mistakes.py",
)  # fmt: skip
OTHERS = ("pytest-cov", "pytest-randomly", "pytest-rerunfailures", "pytest-timeout", "pytest-xdist")
FORKED = ("pytest-forked",)
"""Release 1.7.5 runs no test, of anybody's, beside pytest 9.2 (exit status 3)."""

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False


def install(session: nox.Session, *more: str) -> None:
    """The plugin and what its tests need, as ``constraints.txt`` has them but for pytest and its plugins."""
    lines = Path("constraints.txt").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not re.match(r"(pytest|pluggy|iniconfig)\b", line)]
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join(kept))
        file.flush()
        needs = ("hypothesis", "mpmath", "pyyaml", "markdown-it-py")
        session.install("-c", file.name, "-e", ".[static]", *needs, *more)


@nox.session(python=PYTHONS)
@nox.parametrize("pytest", PYTESTS)
def versions(session: nox.Session, pytest: str) -> None:
    """A version of pytest on a version of Python."""
    install(session, pytest, "pytest-xdist")
    session.run("python", "-m", "pytest", "--version")
    session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, *session.posargs)


@nox.session(python=PYTHONS[2])
@nox.parametrize("pytest", (PYTESTS[0], NEWEST))
def beside(session: nox.Session, pytest: str) -> None:
    """All the other plugins at once, each in ``tests/plugin/test_honest_mistakes.py``."""
    install(session, pytest, *OTHERS, *(FORKED if pytest != NEWEST else ()))
    own = ("-p", "no:randomly", "-p", "no:cacheprovider")
    session.run("python", "-m", "pytest", "-q", *own, "tests/plugin/test_honest_mistakes.py", *session.posargs)
