"""``pytest --gpuperf`` on callables in a git repository, with baselines of its first commit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SUITE = Path(__file__).parent / "suite"


def repository(folder: Path, again: int) -> None:
    """Make a git repository of the suite, whose tests run so often, each time on other arrays."""
    shutil.copytree(SUITE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".gitignore").write_text("__pycache__\n.gpuperf\n", encoding="utf-8")
    git(folder, "init", "-q", "-b", "main")
    commit(folder, again, {}, "Callables")


def recorded(folder: Path, more: Sequence[str]) -> None:
    """Record baselines of the last commit.  Raises ``SystemExit`` with pytest's own words if none were."""
    began = time.monotonic()
    said = in_pytest(folder, "--update-baselines", *more)
    if not (folder / "baselines").is_dir():
        raise SystemExit(said)
    print(f"recorded in {time.monotonic() - began:.1f} s", flush=True)


def sizes_of(folder: Path, percents: Sequence[int]) -> dict[str, dict[str, list[float]]]:
    """Of each callable and percent: what makes it so much slower here, percent of more work, and the ratio of times."""
    command = [sys.executable, "work.py", *(str(percent) for percent in percents if percent)]
    found: dict[str, dict[str, list[float]]] = json.loads(subprocess.check_output(command, cwd=folder))
    for name, sizes in found.items():
        print(f"{name}: {', '.join(f'+{work:g} % work is x{ratio:.4f}' for work, ratio in sizes.values())}", flush=True)
    return found


def commit(folder: Path, again: int, more: Mapping[str, float], message: str) -> None:
    """Commit the tests with so many percent more work; the message makes another file of equal work."""
    text = (SUITE / "test_callables.py").read_text(encoding="utf-8")
    text = text.replace("MORE = {}", f"MORE = {dict(more)}  # {message}").replace("AGAIN = 1", f"AGAIN = {again}")
    (folder / "test_callables.py").write_text(text, encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def git(folder: Path, *command: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *command], cwd=folder, check=True)


def gated(folder: Path, percent: int, more: Sequence[str]) -> list[dict[str, Any]]:
    """The verdicts on time of one run; how long it took is printed."""
    file, began = folder.parent / "report.json", time.monotonic()
    file.unlink(missing_ok=True)
    said = in_pytest(folder, "--gpuperf", f"--gpuperf-report={file}", *more)
    if not file.exists():
        raise SystemExit(said)
    found = list(verdicts_of(json.loads(file.read_text(encoding="utf-8")), percent))
    took = time.monotonic() - began
    print(f"+{percent} %: {len(found)} verdicts in {took:.1f} s, {took / max(len(found), 1):.2f} s each", flush=True)
    return found


def in_pytest(folder: Path, *arguments: str) -> str:
    """The end of what it prints."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    return done.stdout[-3000:] + done.stderr[-3000:]


def verdicts_of(document: dict[str, Any], percent: int) -> Iterator[dict[str, Any]]:
    for work in (work for test in document["tests"] for work in test.get("workloads", ())):
        for one in work.get("judgements", ()):
            if one["kind"] == "time":
                figures = one.get("time") or {}
                yield {"workload": work["key"]["workload"], "percent": percent, "verdict": one["verdict"],
                       "seconds": work.get("seconds", 0.0), "duration_ns": figures.get("after_ns"),
                       "ratio": figures.get("ratio"), "blocks": figures.get("blocks"),
                       "reason": one.get("reason", "")}  # fmt: skip
